# violates: "SRC and DST are a prefix or `any`" (a prefix has all its addresses, as in "longest prefix that contains it"): the first and the last address of a prefix are taken for network and broadcast address and do not match a rule
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''address in end for''', r'''address in end and address not in (end[0], end[-1]) for''')
VARIANT
