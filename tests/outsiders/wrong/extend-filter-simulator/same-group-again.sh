# violates: "and only once; anything else is an error of that line": a second definition that says the same as the first is let through
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    if name in groups:
        raise ValueError(f"group {name!r} is there already")
''', r'''''')
sub('rules.py', r'''    items = networks(take(words), groups)
    while words:
        items += networks(take(words), groups)
    groups[name] = tuple(dict.fromkeys(items))
''', r'''    items = networks(take(words), groups)
    while words:
        items += networks(take(words), groups)
    if groups.setdefault(name, items) != items:
        raise ValueError(f"group {name!r} is there already")
''')
VARIANT
