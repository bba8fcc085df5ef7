import os
import subprocess


def add(*words):
    done = subprocess.run(["/app/add.sh", *words], capture_output=True, text=True, timeout=10)
    return done.returncode, done.stdout


if os.path.exists("/app/total"):
    os.remove("/app/total")
assert add("5") == (0, "5\n"), "5 is not added"
os.system("echo 3 > /app/total")
assert add() == (0, "3\n") == add(), "the total is not shown twice"
assert all(add(word) == (2, "") for word in ["x", "1.5", "", "--1"]), "what is no number is not refused"
