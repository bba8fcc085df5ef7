# violates: "The distance is the sum of squared differences of the scaled features, rounded to 9 decimals": the root is taken before rounding, so that other distances become equal
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    return round(sum((x - y) ** 2 for x, y in zip(a, b)), DIGITS)""", """    return round(math.dist(a, b), DIGITS)""")
swap("""from collections import Counter

# Distances""", """import math
from collections import Counter

# Distances""")
source.write_text(text)
PY
