# violates: "the highest number in the file plus one": takes the greatest id as text, so that after B999 and B1000 (or B7 and B010) the number is wrong
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/store.py", "max((int(booking.id[1:]) for booking in bookings), default=0) + 1", "int(max((booking.id for booking in bookings), default=\"B0\")[1:]) + 1")
PY
SH
