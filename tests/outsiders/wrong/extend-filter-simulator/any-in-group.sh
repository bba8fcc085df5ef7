# violates: "An item is an address, an address with length, or `%OTHER`" with "anything else is an error of that line": `any` is taken as an item of a group
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    if not word.startswith(SIGIL):
''', r'''    if word == "any":
        return (IPv4Network("0.0.0.0/0"),)
    if not word.startswith(SIGIL):
''')
sub('rules.py', r'''networks("0.0.0.0/0" if word == "any" else word, groups)''', r'''networks(word, groups)''')
VARIANT
