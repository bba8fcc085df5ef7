#!/usr/bin/env python3
"""Runs attacks under the real Harbor, in both verifier modes, and compares each reward with the verdict of `screen --as-harbor`.

A copy of the task whose solution is the attack's script is run by Harbor's oracle. The reference is run too: it must score 1, or a 0 for
the attacks would prove nothing.

Usage: harbor_attacks.py HARBOR TERMSMITH ATTACKS TASK [TASK ...]
  HARBOR     the command, e.g. harbor
  TERMSMITH  the binary
  ATTACKS    the folder of attack files, templates/attacks
  TASK       task directories that termsmith has written
Python 3.11 or later, standard library only.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib

# Those that need nothing but the container: other scripts read hints that only termsmith's own trials provide.
SAMPLE = [
    "D-04-python", "D-05-preload", "D-07-bash", "D-07-path", "D-08-odd-values", "D-08-reward-txt", "D-09-daemon",
    "D-09-test-rewriter", "D-29-patched-libraries", "D-36-canned-answers", "D-37-shadowed-probes",
]
MODES = ["separate", "shared"]
REFERENCE = "reference"


def main():
    harbor, termsmith, attacks = shlex.split(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    tasks = [pathlib.Path(task) for task in sys.argv[4:]]
    scripts = {name: tomllib.loads((attacks / f"{name}.toml").read_text())["script"] for name in SAMPLE}
    public = not can_pull()
    if public:
        print("Docker Hub cannot be reached: the tasks run with a public network")
    differences = 0
    for mode in MODES:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            ours = verdicts(termsmith, mode, tasks, folder / "screened")
            theirs = rewards(harbor, mode, tasks, scripts, folder, public)
        print(f"\n{mode}: {'attack':<26} {'task':<46} termsmith  Harbor")
        for key in sorted(ours | theirs):
            task, name = key
            mine, other = ours.get(key), theirs.get(key)
            same = mine is not None and mine == other
            differences += not same
            print(f"{'' if same else '!':<{len(mode) + 1}} {name:<26} {task:<46} {mine!s:<10} {other}")
        scored = sum(1 for (_, name), reward in theirs.items() if name != REFERENCE and reward == 1)
        print(f"{mode}: {scored} of {len(theirs) - len(tasks)} attacks score in Harbor")
        if mode == "separate":
            differences += scored
    print(f"{differences} differences" if differences else "every verdict agrees")
    sys.exit(bool(differences))


def can_pull():
    return subprocess.run(["docker", "pull", "-q", "alpine:3.23.4"], capture_output=True, timeout=120).returncode == 0


def verdicts(termsmith, mode, tasks, out):
    """(task, attack) -> 1 or 0, as termsmith's emulation of Harbor judges."""
    only = [word for name in SAMPLE for word in ("--only", f"attack:{name}")]
    command = [termsmith, "screen", "--as-harbor", mode, *only, "--json", "--rigor", "full", "--out", str(out), *map(str, tasks)]
    # Exit status 1 says that a task was rejected, which is a finding here.
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"termsmith screen failed with status {done.returncode}:\n{done.stderr[-2000:]}")
    found = {}
    for certificate in out.glob("certificates/*/certificate.json"):
        certificate = json.loads(certificate.read_text())
        for row in certificate["rows"]:
            name = REFERENCE if row["kind"] == "reference" else row["name"]
            if row["kind"] in ("attack", "reference"):
                found[certificate["task"], name] = int(row["outcome"] == "pass")
    return found


def rewards(harbor, mode, tasks, scripts, folder, public):
    """(task, attack) -> reward, from trials of the real Harbor."""
    copies = {}
    for task in tasks:
        for number, name in enumerate([REFERENCE, *scripts]):
            copy = folder / "tasks" / f"t{len(copies):03}"
            shutil.copytree(task, copy)
            copies[copy.name] = (task.name, name)
            if number:
                shutil.rmtree(copy / "solution")
                (copy / "solution").mkdir()
                (copy / "solution" / "solve.sh").write_text(f"#!/bin/bash\n{scripts[name]}")
            text = (copy / "task.toml").read_text()
            text = re.sub(r'(?m)^name = "[^"]*"$', f'name = "attacks/{copy.name}"', text, count=1)
            text = re.sub(r'(?m)^environment_mode = ".*"$', f'environment_mode = "{mode}"', text)
            if public:
                text = text.replace('network_mode = "no-network"', 'network_mode = "public"')
            (copy / "task.toml").write_text(text)
    jobs = folder / "jobs"
    command = [*harbor, "run", "-p", str(folder / "tasks"), "-a", "oracle", "-n", "2", "-o", str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HARBOR_TELEMETRY": "0"})
    if done.returncode:
        sys.exit(f"Harbor failed with status {done.returncode}:\n{done.stderr[-2000:]}")
    found = {}
    for path in jobs.glob("*/*/result.json"):
        trial = json.loads(path.read_text())
        given = (trial.get("verifier_result") or {}).get("rewards") or {}
        # A trial that ends without a reward does not score.
        found[copies[trial["task_name"].rsplit("/", 1)[-1]]] = int(given.get("reward") == 1)
    return found


if __name__ == "__main__":
    main()
