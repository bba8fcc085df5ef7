# violates: "equal ones by name, ascending" / "Fields count exactly as they stand, blanks and letter case included": ties are ordered without regard to letter case
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/reports.py", "(-item[1], item[0])", "(-item[1], item[0].casefold())")
PY
SH
