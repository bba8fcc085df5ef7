# violates: "If only one of the two ends is periodic the case cannot be used." - a case whose right end alone is periodic is computed
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('config.py', 'if (case["left"]["type"] == "periodic") != (case["right"]["type"] == "periodic"):',
    'if case["left"]["type"] == "periodic" and case["right"]["type"] != "periodic":')
E
