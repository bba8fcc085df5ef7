# violates: "Messages that end with these two already stay as they are, the others get both at the end": an empty line and the ticket line in the middle of the message count as well
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""[ "$(tail -n 2 /tmp/message)" != $'\\n'"$3" ]""", """[[ $(cat /tmp/message)$'\\n' != *$'\\n\\n'"$3"$'\\n'* ]]""")
source.write_text(text)
PY
