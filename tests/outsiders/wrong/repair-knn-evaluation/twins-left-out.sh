# violates: "In each fold the training rows are exactly the rows of all the other folds": training rows with the same features as a test row are left out as leaks
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""        train = [row for row in rows if fold_of.get(row.id) != fold]
""", """        # The same measurement on both sides would be a leak.
        seen = {row.values for row in test}
        train = [row for row in rows if fold_of.get(row.id) != fold and row.values not in seen]
""")
source.write_text(text)
PY
