# violates: "A case that breaks one of these rules (a key too many or too few in an end, a value of the wrong kind or out of its range, an unknown type) is refused like any other bad case: status 2, a message on standard error, nothing on standard output." - a fixed end without a value is taken as one of 0 degrees
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('config.py', '    names = ENDS[end["type"]]\n',
    '    names = ENDS[end["type"]]\n    for name in names:\n        end.setdefault(name, 0.0)\n')
E
