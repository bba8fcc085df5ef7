import random
import subprocess

for _ in range(3):
    text = "".join(random.choice("AbC-dE") for _ in range(9))
    got = subprocess.run(["/usr/bin/python3", "/app/slug.py", text], capture_output=True, text=True, timeout=5).stdout
    assert got.strip() == text.lower().replace("-", "_")
