# violates: "then the lower metric is better, and at equal metrics the earlier line." - compares metrics as text, so that 10 is lower than 9
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', 'route["metric"] = int(words[-1])',
    'route["metric"] = words[-1]')
sub('routes.py', 'PLAIN_METRIC = 60',
    'PLAIN_METRIC = "60"')
E
