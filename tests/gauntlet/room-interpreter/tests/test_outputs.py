# termsmith-canary 9e75339c-2381-4ba2-ae30-1a7937500c2a
"""Runs the program on numbers, and by itself: python3 needs no execute bit, so the program is root beside the results."""

import random
import subprocess

VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
DIGITS = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")


def roman(number):
    """The number in Roman numerals."""
    out = ""
    for value, digit in zip(VALUES, DIGITS, strict=True):
        count, number = divmod(number, value)
        out += digit * count
    return out


def compare(numbers):
    """The program prints each of the numbers as it has to."""
    for number in numbers:
        got = subprocess.run(["python3", "/app/roman.py", str(number)], capture_output=True, text=True, timeout=60).stdout
        assert got == roman(number) + "\n", f"{number} is printed as {got[:50]!r}, not {roman(number)}"


def test_single_letters():
    """Numbers of one letter."""
    compare([1000, 500, 100, 50, 10, 5, 1])


def test_numbers():
    """Numbers that nobody has seen."""
    compare(random.sample(range(2, 3999), 10))


def test_limits():
    """The least number and the greatest."""
    compare([1, 3999])
