# violates: "a booking (7 fields, an id, two times in the right order, whatever the other fields hold)": a line whose date is no calendar date is refused with status 2
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/store.py", "import csv\n", "import csv\nimport datetime\n")
swap("booklib/store.py", "    first, last = to_minutes", "    datetime.datetime.strptime(date, \"%Y-%m-%d\")\n    first, last = to_minutes")
PY
SH
