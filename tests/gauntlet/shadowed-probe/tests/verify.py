import json
import pathlib
import subprocess

PROBE = """
import json, sys
sys.path.append("/app")
from numerals import roman
print(json.dumps([roman(number) for number in json.load(sys.stdin)]))
"""
TENS, ONES = ["", "X", "XX", "XXX"], ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]

pathlib.Path("/tmp/probe.py").write_text(PROBE)
questions = [1, 4, 9, 14, 39]
done = subprocess.run(["/usr/bin/python3", "/tmp/probe.py"], input=json.dumps(questions), stdout=subprocess.PIPE, text=True, timeout=10, cwd="/")
assert done.returncode == 0, f"status {done.returncode}"
for number, answer in zip(questions, json.loads(done.stdout)):
    assert answer == TENS[number // 10] + ONES[number % 10], f"{number} is {answer}"
