# violates: `{"flows": 3, "bytes": 4512}`, "the number of those flows and the sum of their bytes": numbers are written as JSON strings
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''print(json.dumps(sums,''', r'''print(json.dumps({hop: {name: str(value) for name, value in entry.items()} for hop, entry in sums.items()},''')
VARIANT
