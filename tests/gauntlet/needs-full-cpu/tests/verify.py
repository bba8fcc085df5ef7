import os
import subprocess
import time


def ratio():
    before, start = os.times(), time.perf_counter()
    out = subprocess.run(["/usr/bin/python3", "-I", "-S", "/app/spin.py"], capture_output=True, text=True, timeout=10).stdout
    assert out.strip() == "done"
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used > 0.2, "it did not compute"
    return wall / used


assert any(ratio() < 1.5 for _ in range(8)), "too slow"
