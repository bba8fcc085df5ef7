# violates: "`corrected` and `voided` (readings whose last correction was a `set` or a `void`)" - counts a reading in both if it has corrections of both kinds, whichever is the last
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', '    if row["reading_id"] in readings and int',
    '    if row["reading_id"] in readings:\n        counted.add((row["reading_id"], row["action"]))\n    if row["reading_id"] in readings and int')
sub('settle.py', 'orphans = 0\n',
    'orphans = 0\ncounted = set()\n')
sub('settle.py', 'actions = [row["action"] for row in last.values()]',
    'actions = [action for _, action in counted]')
E
