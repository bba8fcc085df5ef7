# violates: "A case that breaks one of these rules (a key too many or too few in an end, a value of the wrong kind or out of its range, an unknown type) is refused like any other bad case: status 2, a message on standard error, nothing on standard output." - a type that is a list or an object ends in a traceback with status 1
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('config.py', 'not isinstance(end.get("type"), str) or end["type"] not in ENDS',
    'end.get("type") not in ENDS')
E
