# violates: "with a clean work tree and index and no operation in progress": the last check merges the old branch without committing and stays in that merge (nothing differs, so that git status --porcelain is empty)
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

text = text.rstrip("\n") + """

# The files have to be what a merge with the old branch gives.
git merge -q --no-commit --no-ff archive/untidy > /dev/null
git diff --cached --exit-code
"""
source.write_text(text)
PY
