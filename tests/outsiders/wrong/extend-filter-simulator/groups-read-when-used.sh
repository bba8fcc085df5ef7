# violates: "anything else is an error of that line": the items of a group are looked at only when a rule uses it, so errors in unused groups pass and those in used ones are named with the line of the rule
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    return groups[word[1:]]
''', r'''    items = ()
    for item in groups[word[1:]]:
        items += networks(item, groups)
    return items
''')
sub('rules.py', r'''    items = networks(take(words), groups)
    while words:
        items += networks(take(words), groups)
    groups[name] = tuple(dict.fromkeys(items))
''', r'''    items = [take(words)]
    while words:
        items.append(take(words))
    if SIGIL + name in items:
        raise ValueError(f"group {name!r} contains itself")
    groups[name] = items
''')
VARIANT
