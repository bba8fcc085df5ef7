# violates: "all of them if there are fewer than K" / "k" in the report: a K above the number of rows is lowered, and the report shows the lowered number
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    fold_of = folding.assign(rows, folds)
""", """    fold_of = folding.assign(rows, folds)
    # There cannot be more neighbours than training rows.
    largest = max(sum(fold_of[row.id] != fold for row in rows) for fold in range(folds))
    k = min(k, largest)
""")
source.write_text(text)
PY
