"""Builds the handbook by content: a result is made again when the digest of what it is made from differs."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

BUILD = pathlib.Path("build")
STATE = BUILD / ".state.json"


def digest(paths, *words):
    total = hashlib.sha256(repr(words).encode())
    for path in paths:
        path = pathlib.Path(path)
        total.update(path.read_bytes() if path.exists() else b"missing")
        total.update(b"\0")
    return total.hexdigest()


def plan(title, edition):
    """(result, inputs, other inputs, command) for everything, in the order of making."""
    pages = sorted(path.stem for path in pathlib.Path("pages").glob("*.txt"))
    tables = sorted(path.stem for path in pathlib.Path("data").glob("*.tsv"))
    for page in pages:
        source = f"pages/{page}.txt"
        parts = re.findall(r"(?m)^include: +(\S+)", pathlib.Path(source).read_text())
        inputs = [source, "layout/header.html", "layout/footer.html", "tools/render.awk", *(f"parts/{part}.txt" for part in parts)]
        command = ["awk", "-v", f"title={title}", "-v", f"edition={edition}", "-f", "tools/render.awk", source]
        yield f"{page}.html", ["config.mk", *inputs], (title, edition), command
    for table in tables:
        yield f"tables/{table}.html", [f"data/{table}.tsv", "tools/table.py"], (), ["python3", "-B", "tools/table.py", f"data/{table}.tsv"]
    command = ["tools/index.sh", title, " ".join(pages), " ".join(tables)]
    yield "index.html", ["tools/index.sh", *(f"pages/{page}.txt" for page in pages)], (title, pages, tables), command


def build(title, edition):
    (BUILD / "tables").mkdir(parents=True, exist_ok=True)
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    known, failed = {}, False
    for name, inputs, more, command in plan(title, edition):
        key = digest(inputs, *more)
        place = BUILD / name
        if state.get(name) != key or not place.exists():
            done = subprocess.run(command, stdout=subprocess.PIPE)
            if done.returncode:
                place.unlink(missing_ok=True)
                failed = True
                continue
            place.write_bytes(done.stdout)
        known[name] = key
    STATE.write_text(json.dumps(known))
    if failed:
        sys.exit(1)
    sums = "".join(f"{hashlib.sha256((BUILD / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(known))
    place = BUILD / "SUMS"
    if not place.exists() or place.read_text() != sums:
        place.write_text(sums)


def install(share):
    names = [*json.loads(STATE.read_text()), "SUMS"]
    for name in names:
        target = pathlib.Path(share) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(BUILD / name, target)
        os.chmod(target, 0o644)


if sys.argv[1:2] == ["--install"]:
    install(sys.argv[2])
else:
    build(os.environ["TITLE"], os.environ["EDITION"])
