# violates: "appends a confirmed booking as one line (ended by `\n`)": in a file with CRLF line ends the new line ends with CRLF as well
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/store.py", """        unended = not source.read().endswith(b"\\n")
""", """        content = source.read()
    unended = not content.endswith(b"\\n")
    ending = "\\r\\n" if b"\\r\\n" in content else "\\n"
""")
swap("booklib/store.py", """sink.write("\\n" if""", """sink.write(ending if""")
swap("booklib/store.py", """lineterminator="\\n")""", """lineterminator=ending)""")
PY
SH
