# violates: "A correction row whose reading id has no reading left after rules 1 and 2 is an orphan and does nothing." - corrections of readings of which all rows are rejected are not counted as orphans, as the id is known
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', '    orphans += row["reading_id"] not in readings\n',
    '    orphans += all(row["reading_id"] != known["id"] for known in rows)\n')
E
