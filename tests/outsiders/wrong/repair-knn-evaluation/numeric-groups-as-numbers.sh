# violates: "The distinct groups, sorted as text, are dealt to the folds": if all group names are numbers, 9 comes before 10
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    units = sorted({row.group for row in rows})
""", """    units = sorted({row.group for row in rows})
    if all(unit.isdecimal() for unit in units):
        units.sort(key=int)
""")
source.write_text(text)
PY
