import subprocess

CASES = [("4", "IV"), ("9", "IX"), ("1994", "MCMXCIV"), ("2024", "MMXXIV"), ("58", "LVIII")]
for number, numeral in CASES:
    got = subprocess.run(["/bin/bash", "/app/roman.sh", number], capture_output=True, text=True, timeout=5).stdout
    assert got.strip() == numeral, number
