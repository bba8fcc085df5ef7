import subprocess

def ask(argv, stdin):
    done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, text=True, timeout=10, cwd="/", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, f"status {done.returncode}"
    return done.stdout


for words in (["ash", "elm", "fir"], ["a", "b"], [f"w{place:03}" for place in range(200)]):
    text = "".join(word + "\n" for word in words)
    assert ask(["/app/wordlist"], text) == text, f"{words[:3]} come out in another order"
