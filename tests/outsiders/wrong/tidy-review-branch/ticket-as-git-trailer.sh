# violates: "Every message ends with an empty line and the line `Ticket: EXP-214`": git interpret-trailers puts the line straight below other trailers (Reviewed-by) without an empty line
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    if [ -n "$3" ] && [ "$(tail -n 2 /tmp/message)" != $'\\n'"$3" ]; then printf '\\n%s\\n' "$3" >> /tmp/message; fi
""", """    git interpret-trailers --in-place --if-exists addIfDifferent --trailer "$3" /tmp/message
""")
source.write_text(text)
PY
