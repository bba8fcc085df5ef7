# differs: a Python script does the work and goes by the contents of the files (sha256) instead of their times; the Makefile only calls it; pages and tables that are gone are removed from build/
cat > Makefile <<'M'
include config.mk
export TITLE EDITION
PREFIX := /usr/local
DESTDIR :=
export HANDBOOK_TO := $(DESTDIR)$(PREFIX)/share/port-manual
.PHONY: all install clean
all:
	@python3 -B handbook.py
install:
	@python3 -B handbook.py install
clean:
	rm -rf build
M
cat > handbook.py <<'P'
"""Makes the handbook below build/; goes by contents."""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

STATE = "build/.state.json"
COMMON = ["layout/header.html", "layout/footer.html", "tools/render.awk", "config.mk"]


def digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def names(folder, end):
    return sorted(os.path.basename(path)[: -len(end)] for path in glob.glob(f"{folder}/*{end}") if not os.path.basename(path).startswith("."))


def put(path, data):
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except OSError:
        pass
    with open(path, "wb") as file:
        file.write(data)


def parts(page):
    with open(f"pages/{page}.txt", encoding="utf-8", errors="replace") as file:
        return [f"parts/{line.split()[1]}.txt" for line in file if re.match(r"include: \s*\S", line)]


def main():
    os.makedirs("build/tables", exist_ok=True)
    try:
        with open(STATE) as file:
            state = json.load(file)
    except (OSError, ValueError):
        state = {}
    pages, tables = names("pages", ".txt"), names("data", ".tsv")
    title, edition = os.environ["TITLE"], os.environ["EDITION"]
    jobs = []
    for page in pages:
        jobs.append((f"build/{page}.html", [f"pages/{page}.txt", *COMMON, *parts(page)],
                     ["awk", "-v", f"title={title}", "-v", f"edition={edition}", "-f", "tools/render.awk", f"pages/{page}.txt"]))
    for table in tables:
        jobs.append((f"build/tables/{table}.html", [f"data/{table}.tsv", "tools/table.py"], ["python3", "-B", "tools/table.py", f"data/{table}.tsv"]))
    failed, new = False, {}
    for target, inputs, command in jobs:
        seen = [[path, digest(path)] for path in inputs]
        if state.get(target) == seen and os.path.exists(target):
            new[target] = seen
            continue
        done = subprocess.run(command, stdout=subprocess.PIPE)
        if done.returncode:
            failed = True
            if os.path.exists(target):
                os.remove(target)
        else:
            with open(target, "wb") as file:
                file.write(done.stdout)
            new[target] = seen
    put(STATE, json.dumps(new).encode())
    targets = [job[0] for job in jobs]
    for path in glob.glob("build/*.html") + glob.glob("build/tables/*.html"):
        if path not in targets and path != "build/index.html":
            os.remove(path)
    index = subprocess.run(["tools/index.sh", title, " ".join(pages), " ".join(tables)], stdout=subprocess.PIPE, check=True).stdout
    put("build/index.html", index)
    there = [target[6:] for target in targets if target in new] + ["index.html"]
    put("build/SUMS", subprocess.run(["sha256sum", *there], cwd="build", stdout=subprocess.PIPE, check=True).stdout)
    if failed:
        sys.exit(1)
    if sys.argv[1:] == ["install"]:
        to = os.environ["HANDBOOK_TO"]
        os.makedirs(f"{to}/tables", exist_ok=True)
        for name in there + ["SUMS"]:
            subprocess.run(["install", "-m", "644", f"build/{name}", f"{to}/{name}"], check=True)


main()
P
sed -i 's,^cp .*,cp /solution/Makefile /solution/handbook.py /app/,' solve.sh
