# violates: "A group has to be defined on an earlier line than where it is used": the name is entered before the items are read, so a group may contain itself
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    items = networks(take(words), groups)
    while words:
        items += networks(take(words), groups)
    groups[name] = tuple(dict.fromkeys(items))
''', r'''    groups[name] = ()
    groups[name] += networks(take(words), groups)
    while words:
        groups[name] += networks(take(words), groups)
''')
VARIANT
