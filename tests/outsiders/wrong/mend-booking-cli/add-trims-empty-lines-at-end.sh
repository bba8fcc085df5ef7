# violates: "All other bytes of the file stay as they are; only a last line without `\n` gets one first": empty lines at the end of the file are removed before the new booking
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/store.py", """    with open(path, "rb") as source:
        unended = not source.read().endswith(b"\\n")
    with open(path, "a", newline="", encoding="utf-8") as sink:
        # A last line without its end is a line all the same.
        sink.write("\\n" if unended else "")
""", """    with open(path, newline="", encoding="utf-8") as source:
        content = source.read()
    # The file ends with exactly one line end, whatever it ended with before.
    kept = content.rstrip("\\n")
    with open(path, "r+", newline="", encoding="utf-8") as sink:
        sink.write(kept + "\\n")
        sink.truncate()
""")
PY
SH
