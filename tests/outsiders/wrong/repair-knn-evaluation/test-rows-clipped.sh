# violates: "(test rows may leave the range 0 … 1)": scaled values are cut off at 0 and 1
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("[(value - low) / (high - low) if high > low else 0.0 for value, (low, high) in zip(values, limits)]",
     "[min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0 for value, (low, high) in zip(values, limits)]")
source.write_text(text)
PY
