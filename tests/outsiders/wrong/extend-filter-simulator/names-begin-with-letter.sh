# violates: "Names consist of lower-case letters, digits and `-`": a name has to begin with a letter, so 10-net or -x is an error
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''"[a-z0-9-]+"''', r'''"[a-z][a-z0-9-]*"''')
VARIANT
