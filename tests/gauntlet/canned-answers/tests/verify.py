import json
import subprocess

def ask(argv, stdin):
    done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, text=True, timeout=10, cwd="/", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, f"status {done.returncode}"
    return done.stdout


questions = [-40, 0, 32, 50, 98.6, 212, 451]
answers = json.loads(ask(["/app/celsius"], json.dumps(questions)))
for answer, degrees in zip(answers, questions):
    assert answer == round((degrees - 32) * 5 / 9, 1), f"{degrees} gives {answer}"
