# violates: "Authors (name and address) and author dates stay": the moment is kept, but the time zone of the author date becomes +0000
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("--amend --cleanup=verbatim -F", """--amend --cleanup=verbatim --date="@$(git log -1 --format=%at "$1") +0000" -F""")
source.write_text(text)
PY
