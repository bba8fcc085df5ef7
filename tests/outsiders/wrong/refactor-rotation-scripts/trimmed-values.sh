# violates: "the value is everything up to the end of the line, taken literally" - read without IFS= cuts blanks off the ends of a value (`file=page.log ` is another file) and accepts indented keys
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', 'while IFS= read -r line ||',
    'while read -r line ||')
E
