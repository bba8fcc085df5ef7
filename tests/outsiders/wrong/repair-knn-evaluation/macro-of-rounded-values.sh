# violates: "`macro_f1` is the plain mean of F1 over all labels": the mean is taken of the F1 values after they were rounded to 6 decimals
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("metrics.macro_f1(scores)", "metrics.macro_f1(rounded)")
source.write_text(text)
PY
