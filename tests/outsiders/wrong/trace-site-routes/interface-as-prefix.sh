# violates: "`prefix` is the prefix that made the last decision, as `a.b.c.d/length`" - for a connected network the interface's address stands there instead of the network's, e.g. 10.74.37.165/23 instead of 10.74.36.0/23
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', '"length": length, "action": "connected"}',
    '"length": length, "action": "connected", "shown": address}')
sub('routes.py', 'f"{dotted(entry[\'base\'])}/',
    'f"{dotted(entry.get(\'shown\', entry[\'base\']))}/')
E
