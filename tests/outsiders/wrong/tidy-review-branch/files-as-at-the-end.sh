# violates: "Each commit holds the changes that its originals made": every commit takes its files as they are at the tip, so that the first one already switches all formats on
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    git cherry-pick -n "$commit"
""", """    git diff-tree -r -z --no-commit-id --name-only "$commit" | xargs -0 git checkout -q exports --
""")
source.write_text(text)
PY
