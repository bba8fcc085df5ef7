# violates: "one member for each next hop to which permitted flows go": every next hop of the table but discard has a member, also those without permitted flows
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''sums = {}''', r'''sums = {hop: {"flows": 0, "bytes": 0} for hop in routes.values() if hop != "discard"}''')
VARIANT
