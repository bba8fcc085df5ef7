# violates: "If a line after the header is neither empty nor a booking [...] every command stops with exit status 2": `free` looks only at lines of its court and date and overlooks other bad lines
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/store.py", "def load(path):", "def load(path, wanted=None):")
swap("booklib/store.py", """        if not row:
""", """        if not row or (wanted and row[1:3] != wanted):
""")
swap("booklib/cli.py", "    bookings = store.load(rest[0])", "    bookings = store.load(rest[0], rest[1:3] if command == \"free\" else None)")
PY
SH
