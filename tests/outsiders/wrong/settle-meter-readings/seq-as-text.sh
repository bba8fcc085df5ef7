# violates: "For each reading id only the correction with the highest `seq` counts." - compares seq as text, so that 424 is higher than 300424
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', 'int(row["seq"]) > int(last.get(row["reading_id"], {"seq": -1})["seq"])',
    'row["seq"] > last.get(row["reading_id"], {"seq": ""})["seq"]')
E
