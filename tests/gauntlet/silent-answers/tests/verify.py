import subprocess

def ask(argv, stdin):
    done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, text=True, timeout=10, cwd="/", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, f"status {done.returncode}"
    return done.stdout


text = [f"line {place} " + "x" * (place * 7 % 31) for place in range(40)]
wanted = {f"{number}: {line}" for number, line in enumerate(text, 1) if len(line) > 20}
for line in ask(["/app/longlines"], "".join(line + "\n" for line in text)).splitlines():
    assert line in wanted, f"{line!r} should not be there"
