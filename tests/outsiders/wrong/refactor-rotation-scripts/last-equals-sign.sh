# violates: "Lines are `key=value` without spaces around the `=`, the value is everything up to the end of the line, taken literally" - the value begins after the last `=`, so that `file=a=b.log` means b.log
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', 'key=${line%%=*} value=${line#*=}',
    'key=${line%%=*} value=${line##*=}')
E
