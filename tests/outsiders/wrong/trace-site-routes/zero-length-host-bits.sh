# violates: "`host-bits`: its prefix has bits set beyond its length, like `10.1.2.3/24`." - a prefix of length 0 is never looked at, so that 128.0.0.0/0 counts as usable
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', 'if route["base"] & ~mask(route["length"]):',
    'if route["length"] and route["base"] & ~mask(route["length"]):')
E
