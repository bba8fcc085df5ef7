# violates: "can never match anything, because one earlier rule alone matches everything that they match": also lists rules to whose destinations no route but discard leads
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''if any(covers(earlier, rule) for earlier in rules[:place]):''', r'''if any(covers(earlier, rule) for earlier in rules[:place]) or rule[3][1] and not any(n.overlaps(rule[3][1]) and hop != "discard" for n, hop in routes.items()):''')
VARIANT
