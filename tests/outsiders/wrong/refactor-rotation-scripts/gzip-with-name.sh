# violates: "Nothing may change in what happens to the logs: the same generations, sizes, modes, messages and exit statuses as today, service by service." - gzip without -n stores name and time, so that the compressed files are larger than today's
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', 'gzip -n -- ',
    'gzip -- ')
E
