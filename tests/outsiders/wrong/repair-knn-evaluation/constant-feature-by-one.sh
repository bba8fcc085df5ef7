# violates: "A feature that is constant in the training rows counts as 0 for every row of that fold": the width 0 is replaced by 1, so a test row keeps value - min, and a large one drowns all other features in the rounding
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("[(value - low) / (high - low) if high > low else 0.0 for value, (low, high) in zip(values, limits)]",
     "[(value - low) / ((high - low) or 1.0) for value, (low, high) in zip(values, limits)]")
source.write_text(text)
PY
