# violates: "Fields count exactly as they stand, blanks and letter case included": blanks after a comma are dropped, so that " Oak" is "Oak" and " confirmed" is confirmed
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/store.py", "csv.reader(source)", "csv.reader(source, skipinitialspace=True)")
PY
SH
