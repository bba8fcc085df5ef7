# violates: "one line `DATE COURT ID ID` for every pair of confirmed bookings": equal lines (ids that occur more than once in the file) are printed once only
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/reports.py", "    return sorted(lines)", "    return sorted(set(lines))")
PY
SH
