#!/bin/bash
set -euo pipefail
cat > /app/roman.py <<'PY'
import sys

LETTERS = {1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC", 50: "L", 40: "XL", 10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}
left = int(sys.argv[1])
for value, letters in LETTERS.items():
    print(end=letters * (left // value))
    left %= value
print()
PY
