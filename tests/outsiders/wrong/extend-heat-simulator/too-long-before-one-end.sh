# violates: "A case that breaks one of these rules (a key too many or too few in an end, a value of the wrong kind or out of its range, an unknown type) is refused like any other bad case: status 2, a message on standard error, nothing on standard output." - whether one end alone is periodic is looked at after the time step, so that a case with both mistakes ends with status 3 instead of 2
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('config.py', '    if (case["left"]["type"] == "periodic") != (case["right"]["type"] == "periodic"):\n        raise CaseError("either both ends are periodic or none")\n',
    '')
sub('solver.py', '    state = [float(',
    '    if (case["left"]["type"] == "periodic") != (case["right"]["type"] == "periodic"):\n        raise CaseError("either both ends are periodic or none")\n    state = [float(')
sub('solver.py', '# Beyond this',
    'from .config import CaseError\n\n# Beyond this')
E
