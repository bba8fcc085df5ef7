#!/usr/bin/env python3
"""run.py BINARY [wrong|honest] [RECIPE…]: the outsiders' solutions against the tests of the recipes that they were written for.

Prints each solution that does not end as it should, and the rates. Status 1 if fewer than 95 % of the wrong solutions fail, an honest one
fails, or a script cannot be applied.
"""

import concurrent.futures
import filecmp
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RECIPES = HERE.parent.parent / "templates/recipes"
# The seed of the tasks that the authors saw.
SEED = "11"
# The share of wrong solutions that must fail.
AIM = 0.95
# The folders of solutions, and how each must end.
KINDS = (("wrong", "fail"), ("honest", "pass"))
# Verifications at once: each has two containers.
AT_ONCE = 2


def rendered(binary, recipe, folder):
    """The task of a recipe, rendered into `folder`."""
    (place,) = RECIPES.glob(f"*/{recipe}")
    name = f"{place.parent.name}/{recipe}"
    task = folder / recipe
    subprocess.run([binary, "recipe", "render", name, "--seed", SEED, "--out", task], check=True, stdout=subprocess.DEVNULL)
    return task


def differs(one, other):
    compared = filecmp.dircmp(one, other)
    return bool(compared.left_only or compared.right_only or compared.diff_files) or any(
        differs(one / name, other / name) for name in compared.common_dirs
    )


def tried(binary, task, script, folder):
    """`pass`, `fail`, or why the script could not be tried."""
    solution = folder / script.parent.parent.name / task.name / script.stem
    shutil.copytree(task / "solution", solution)
    applied = subprocess.run(["bash", "-e", script], cwd=solution, capture_output=True, text=True)
    if applied.returncode:
        return f"not applied: {applied.stderr.strip().splitlines()[-1:]}"
    if not differs(solution, task / "solution"):
        return "not applied: it changes nothing"
    verified = subprocess.run([binary, "verify", task, "--solution", solution], capture_output=True, text=True)
    return {0: "pass", 1: "fail"}.get(verified.returncode, f"status {verified.returncode}: {verified.stderr[-200:]}")


def main(binary, wanted):
    binary = str(pathlib.Path(binary).resolve())
    kinds = [(kind, right) for kind, right in KINDS if kind in wanted] or KINDS
    wanted = [name for name in wanted if name not in dict(KINDS)]
    good, counted, bad = {}, {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        folder = pathlib.Path(folder)
        for kind, right in kinds:
            for place in sorted((HERE / kind).iterdir()):
                if wanted and place.name not in wanted:
                    continue
                task = folder / place.name
                if not task.exists():
                    rendered(binary, place.name, folder)
                scripts = sorted(place.glob("*.sh"))
                for script, end in zip(scripts, pool.map(lambda script: tried(binary, task, script, folder), scripts), strict=True):
                    counted[kind] = counted.get(kind, 0) + 1
                    good[kind] = good.get(kind, 0) + (end == right)
                    bad += end not in ("pass", "fail")
                    if end != right:
                        print(f"{kind}/{place.name}/{script.stem}: {end}\n    {script.read_text().splitlines()[0]}", flush=True)
    for kind, right in kinds:
        print(f"{good.get(kind, 0)} of {counted.get(kind, 0)} {kind} solutions {right}")
    enough = good.get("wrong", 0) >= AIM * counted.get("wrong", 0) and good.get("honest", 0) == counted.get("honest", 0)
    return 0 if enough and not bad else 1


sys.exit(main(sys.argv[1], sys.argv[2:]))
