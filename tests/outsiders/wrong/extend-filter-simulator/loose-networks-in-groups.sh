# violates: "a.b.c.d/length (without bits set beyond the length)": networks are read loosely when they stand in a group
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''def networks(word, groups):
    if not word.startswith(SIGIL):
        if not re.fullmatch("[0-9.]+(/[0-9]{1,2})?", word):
            raise ValueError(f"{word!r} is not an address")
        return (IPv4Network(word),)
''', r'''def networks(word, groups, strict=True):
    if not word.startswith(SIGIL):
        if not re.fullmatch("[0-9.]+(/[0-9]{1,2})?", word):
            raise ValueError(f"{word!r} is not an address")
        return (IPv4Network(word, strict),)
''')
sub('rules.py', r'''    items = networks(take(words), groups)
    while words:
        items += networks(take(words), groups)
    groups[name] = tuple(dict.fromkeys(items))
''', r'''    items = networks(take(words), groups, strict=False)
    while words:
        items += networks(take(words), groups, strict=False)
    groups[name] = items
''')
VARIANT
