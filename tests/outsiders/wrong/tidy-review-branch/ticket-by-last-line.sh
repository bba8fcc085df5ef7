# violates: "Messages that end with these two already stay as they are, the others get both at the end": only the last line is looked at, so that a message whose ticket line has no empty line before it gets nothing
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""[ "$(tail -n 2 /tmp/message)" != $'\\n'"$3" ]""", """[ "$(tail -n 1 /tmp/message)" != "$3" ]""")
source.write_text(text)
PY
