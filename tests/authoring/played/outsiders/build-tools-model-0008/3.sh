#!/bin/bash
# Violates: "Three kinds of log line count, beginning in the first column ... All other lines are noise."
# Shown by: a UTF-8 log with the one line '1.000 info old<U+2028>2.000 start ghost' (or U+0085, form feed): this is one line of noise,
#   but splitlines() divides it, and the report has a row for ghost; a warning text may do the same
set -euo pipefail
cd /app
mkdir -p tools

cat > tools/release.py <<'PY'
#!/usr/bin/env python3
"""Work behind the Makefile: release.py lock|check|report"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOCK = os.path.join(ROOT, "packages.lock")


def listing(folder, ending):
    """Names (bytes) of the regular files in a folder that have the ending."""
    folder = os.fsencode(os.path.join(ROOT, folder))
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = [
        (n, os.path.join(folder, n))
        for n in names
        if n.endswith(ending) and not n.startswith(b".")
    ]
    return sorted((n, p) for n, p in found if os.path.isfile(p))


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def number(version):
    return tuple(int(part) for part in version.split("."))


def resolve():
    """(locked, missing): locked maps name to (version, sha256)."""
    index = load(os.path.join(ROOT, "registry", "index.json"))
    todo = []
    for _, path in listing("manifests", b".json"):
        todo.extend(load(path).get("requires", {}).items())
    demanded = set()
    missing = set()
    while todo:
        want = todo.pop()
        if want in demanded:
            continue
        demanded.add(want)
        name, version = want
        entry = index.get(name, {}).get(version)
        if entry is None:
            missing.add(want)
            continue
        todo.extend(entry.get("requires", {}).items())
    best = {}
    for name, version in demanded:
        if name not in best or number(version) > number(best[name]):
            best[name] = version
    if missing:
        return None, sorted(missing, key=lambda w: (w[0], number(w[1])))
    return {n: (v, index[n][v]["sha256"]) for n, v in best.items()}, []


def complain(missing):
    for name, version in missing:
        sys.stderr.write("not in the index: %s %s\n" % (name, version))


def lock_bytes(locked):
    # package names are ASCII, so this order is the bytewise one
    return "".join(
        "%s %s %s\n" % (name, *locked[name]) for name in sorted(locked)
    ).encode("utf-8")


def present_lock():
    try:
        with open(LOCK, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


def do_lock():
    locked, missing = resolve()
    if missing:
        complain(missing)
        return 1
    content = lock_bytes(locked)
    if present_lock() != content:
        with open(LOCK, "wb") as f:
            f.write(content)
    return 0


def do_check():
    locked, missing = resolve()
    if missing:
        complain(missing)
        return 1
    wanted_bytes = lock_bytes(locked)
    present = present_lock()
    if present == wanted_bytes:
        return 0

    def entries(content):
        table = {}
        for line in content.split(b"\n"):
            fields = line.split()
            if fields:
                fields += [b"-"] * (3 - len(fields))
                table[fields[0]] = (fields[1], fields[2])
        return table

    have = entries(present or b"")
    want = entries(wanted_bytes)
    none = (b"-", None)
    out = []
    for name in sorted(set(have) | set(want)):
        a, b = have.get(name, none), want.get(name, none)
        if a != b:
            out.append(b"%s %s %s\n" % (name, a[0], b[0]))
    sys.stdout.buffer.write(b"".join(out))
    sys.stdout.buffer.flush()
    sys.stderr.write("packages.lock is not up to date\n")
    return 1


NAME = rb"([A-Za-z0-9+_.-]+)"
TIME = rb"([0-9]+)\.([0-9]{3})"
START = re.compile(TIME + rb" start " + NAME)
END = re.compile(TIME + rb" end " + NAME + rb" (-?[0-9]+)")
WARNING = re.compile(TIME + rb" warning " + NAME + rb":(?: .*)?")


def millis(match):
    return int(match.group(1)) * 1000 + int(match.group(2))


def seconds(ms):
    sign = "-" if ms < 0 else ""
    return ("%s%d.%03d" % (sign, abs(ms) // 1000, abs(ms) % 1000)).encode()


def do_report():
    rows = [(b"log", b"package", b"seconds", b"warnings", b"status")]
    for log, path in listing("logs", b".log"):
        start, end, warnings = {}, {}, {}
        with open(path, "rb") as f:
            lines = [s.encode("utf-8") for s in f.read().decode("utf-8").splitlines()]
        for line in lines:
            m = START.fullmatch(line)
            if m:
                start.setdefault(m.group(3), millis(m))
                continue
            m = END.fullmatch(line)
            if m:
                end.setdefault(m.group(3), (millis(m), m.group(4)))
                continue
            m = WARNING.fullmatch(line)
            if m:
                warnings[m.group(3)] = warnings.get(m.group(3), 0) + 1
        for package in sorted(start):
            took = status = b"-"
            if package in end:
                took = seconds(end[package][0] - start[package])
                status = end[package][1]
            count = b"%d" % warnings.get(package, 0)
            rows.append((log, package, took, count, status))
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with open(os.path.join(ROOT, "build", "report.tsv"), "wb") as f:
        f.write(b"".join(b"\t".join(row) + b"\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit({"lock": do_lock, "check": do_check, "report": do_report}[sys.argv[1]]())
PY

{
    printf '%s\n' '.PHONY: check lock report' ''
    for target in check lock report; do
        printf '%s:\n\t@python3 -I -B tools/release.py %s\n\n' "$target" "$target"
    done
} | sed '$d' > Makefile

make -C /app lock
make -C /app report
