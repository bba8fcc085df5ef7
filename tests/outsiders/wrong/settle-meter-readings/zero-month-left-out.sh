# violates: "one row for each site and month that has at least one reading left, sorted by site and then month" - a site and month whose readings add up to 0 has no row
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', '    for (site, name), (count, total) in sorted(usage.items()):\n',
    '    for (site, name), (count, total) in sorted(usage.items()):\n        if not total:\n            continue\n')
E
