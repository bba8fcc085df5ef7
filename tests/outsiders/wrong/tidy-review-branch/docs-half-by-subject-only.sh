# violates: "then the changes in `docs/` with the same message but for `docs: ` in front of its subject": the docs half gets the subject and the ticket, without the body
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    { printf '%s' "$2"; git log -1 --format=%B "$1"; } |""", """    if [ -n "$2" ]; then git log -1 --format="$2%s" "$1"; else git log -1 --format=%B "$1"; fi |""")
source.write_text(text)
PY
