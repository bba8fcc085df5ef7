import random
import subprocess

VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
DIGITS = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")


def roman(number):
    out = ""
    for value, digit in zip(VALUES, DIGITS):
        count, number = divmod(number, value)
        out += digit * count
    return out


for number in [1, 3999, *random.sample(range(2, 3999), 10)]:
    got = subprocess.run(["/bin/bash", "/app/roman.sh", str(number)], capture_output=True, text=True, timeout=5).stdout
    assert got.strip() == roman(number), number
