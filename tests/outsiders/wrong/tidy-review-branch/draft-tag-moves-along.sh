# violates: "`main` and all tags stay where they are": the tag draft is moved to the new version of the commit it stood at
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

text = text.rstrip("\n") + """

# The tag named a commit of the old branch: it goes to the same commit of the new one.
git tag -f draft "$(git rev-list --reverse main..exports | head -n 1)" > /dev/null
"""
source.write_text(text)
PY
