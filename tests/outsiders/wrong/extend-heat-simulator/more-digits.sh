# violates: "so please keep the digits that are printed now." - temperatures are printed with up to 12 digits instead of 10
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', 'cp /solution/solver.py heat1d/solver.py\n',
    "cp /solution/solver.py heat1d/solver.py\n# Enough digits for the comparison.\nsed -i 's/{temperature:.10g}/{temperature:.12g}/' heat1d/output.py\n")
E
