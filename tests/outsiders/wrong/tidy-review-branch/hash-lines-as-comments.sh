# violates: "apart from that and `docs: `, messages stay word for word": the message goes through the cleanup of an edited one, which drops lines that begin with #
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("--cleanup=verbatim", "--cleanup=strip")
source.write_text(text)
PY
