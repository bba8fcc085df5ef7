# violates: "PREFIX is `a.b.c.d/length`, a bare address (the same as `/32`) or `default` (the same as `0.0.0.0/0`)." - a route for a bare address and one for the same address with /32 do not compete
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', '            route["base"], route["length"] = prefix(words[0])\n            route["hop"]',
    '            route["base"], route["length"] = prefix(words[0])\n            route["bare"] = "/" not in words[0] and words[0] != "default"\n            route["hop"]')
sub('routes.py', '        key = route["base"], route["length"]\n        if key in best or any((network["base"], network["length"]) == key for',
    '        key = route["base"], route["length"], route.get("bare", False)\n        if key in best or any((network["base"], network["length"]) == key[:2] for')
E
