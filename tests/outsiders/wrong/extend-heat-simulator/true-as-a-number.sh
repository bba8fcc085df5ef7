# violates: "A case that breaks one of these rules (a key too many or too few in an end, a value of the wrong kind or out of its range, an unknown type) is refused like any other bad case: status 2, a message on standard error, nothing on standard output." - true and false count as numbers (1 and 0) for a fixed end, the initial temperatures and the rest
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('config.py', 'return type(value) in (int, float)',
    'return isinstance(value, (int, float))')
E
