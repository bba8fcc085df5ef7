# violates: "A new branch `archive/untidy` points to the tip of the branch as it was": archive/untidy is a tag
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("git branch archive/untidy", "git tag archive/untidy")
source.write_text(text)
PY
