# violates: "the prefixes of all routes in force that change nothing": routes to discard are taken for policy and never listed as redundant
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''if wider and routes''', r'''if hop != "discard" and wider and routes''')
VARIANT
