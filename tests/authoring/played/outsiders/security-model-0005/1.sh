#!/bin/bash
# Violates: "HOST is valid only if it is exactly the name of an entry of `/app/hosts` ... Anything else ... gives exit status 2. Then nothing below `/app` is created, changed or removed."
# Shown by: python3 /app/audit.py 'db1 ' (with a space or line feed at an end) must give status 2 and write nothing,
#   but the blanks are stripped: it writes reports/db1.json with status 0. A host folder 'old ' is refused
set -euo pipefail

cat > /app/audit.py <<'AUDIT_PY'
#!/usr/bin/env python3
"""audit.py HOST: check a saved /etc against baseline.json.

Reads hosts/HOST, writes reports/HOST.json. Each item of the baseline names a
file, a format and a key, and says what the value has to be:

    eq, in, not_in      the value is compared as text
    min, max            the value is compared as a number
    minlen              the value has at least so many characters
    absent              the key must not be there

Formats:

    ssh     "Key value" or "Key=value", the first one counts, a Match block ends the file
    conf    "key = value", the last one counts; [section] lines are skipped, and
            a line that begins with white space continues the one before

In both, "Include PATTERN..." (also "!include") reads other files in its place.
Patterns are relative to the folder of the file that they stand in; /etc/...
is the /etc of the host.

Only what really lies below hosts/HOST belongs to the host. An item whose path
or any Include that is read for it leads elsewhere has the status "outside".
Values of the baseline's secret_keys are judged, but not shown.
"""

import glob
import json
import os
import re
import sys
from collections import Counter

BASE = os.path.dirname(os.path.abspath(__file__))
HOSTS = os.path.join(BASE, "hosts")
REPORTS = os.path.join(BASE, "reports")
BASELINE = os.path.join(BASE, "baseline.json")

INCLUDE = re.compile(r"!?include(?:_try)?\s+(.+)$", re.IGNORECASE)

REDACTED = "[REDACTED]"
NESTING = 8     # how often one file may be open at the same time, under other spellings


class Outside(Exception):
    """A path that does not belong to the host."""


def valid_host(host):
    """Whether this is the very name of a real folder in hosts."""
    try:
        names = os.listdir(HOSTS)
    except OSError:
        return False
    path = os.path.join(HOSTS, host)
    return host in names and os.path.isdir(path) and not os.path.islink(path)


def inside(root, path):
    """Whether a path really lies below the folder of the host."""
    folder = os.path.join(os.path.realpath(root), "")
    return os.path.realpath(path).startswith(folder)


def place(root, folder, path):
    """Where a path lies that was written in a file of this folder."""
    if path.startswith("/etc/"):
        return os.path.join(root, path[len("/etc/"):].lstrip("/"))
    return os.path.join(folder, path)


def logical_lines(text, fmt):
    lines = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        if fmt == "conf" and line[0].isspace() and lines:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    return lines


def unquote(value):
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def included(root, path, patterns):
    """The files that an Include line of this file reads, in order."""
    for pattern in patterns.split():
        # only what was written is a pattern, not the folder in front of it
        pattern = place(glob.escape(root), glob.escape(os.path.dirname(path)),
                        unquote(pattern))
        names = sorted(glob.glob(pattern))
        for name in names:
            if not inside(root, name):
                raise Outside(name)
        for name in names:
            if os.path.isfile(name):
                yield name


def read_pairs(root, path, fmt, seen, opened=()):
    """All (key, value) of a file and of what it includes, in order.

    Raises Outside if an Include matches what does not belong to the host.
    """
    if path in seen:
        return []
    folder, name = os.path.split(path)
    real = os.path.join(os.path.realpath(folder), name)
    if opened.count(real) >= NESTING:
        return []
    seen = seen | {path}
    opened += (real,)
    with open(path, encoding="utf-8", errors="replace") as handle:
        text = handle.read()
    pairs = []
    for line in logical_lines(text, fmt):
        include = INCLUDE.match(line)
        if include:
            for name in included(root, path, include.group(1)):
                pairs += read_pairs(root, name, fmt, seen, opened)
            continue
        if fmt == "ssh":
            key, _, value = re.sub(r"[\s=]+", " ", line, count=1).partition(" ")
            if key.lower() == "match":
                break
        else:
            if line.startswith("["):
                continue
            key, _, value = line.partition("=")
        pairs.append((key.strip().lower(), unquote(value)))
    return pairs


def number(value):
    try:
        return float(value)
    except ValueError:
        return None


def judge(item, value):
    op, want = item["op"], item.get("value")
    if op == "absent":
        return value is None
    if op == "eq":
        return value == want
    if op == "in":
        return value in want
    if op == "not_in":
        return value not in want
    if op == "minlen":
        return len(value) >= want
    have = number(value)
    if have is None:
        return False
    return have >= want if op == "min" else have <= want


def check(root, item):
    result = {"id": item["id"], "file": item["path"], "key": item["key"]}
    path = place(root, root, item["path"])
    if not inside(root, path):
        return dict(result, status="outside", found=None)
    if not os.path.isfile(path):
        return dict(result, status="missing", found=None)
    try:
        pairs = read_pairs(root, path, item["format"], frozenset())
    except Outside:
        return dict(result, status="outside", found=None)
    found = None
    for key, value in pairs:
        if key == item["key"].lower():
            found = value
            if item["format"] == "ssh":
                break
    value = item.get("default") if found is None else found
    if value is None and item["op"] != "absent":
        return dict(result, status="unset", found=None)
    return dict(result, status="pass" if judge(item, value) else "fail", found=found)


def redact(result, secrets):
    if result["found"] is not None and result["key"].lower() in secrets:
        return dict(result, found=REDACTED)
    return result


def main(argv):
    if len(argv) != 2:
        print("usage: audit.py HOST", file=sys.stderr)
        return 2
    host = argv[1].strip()
    if not valid_host(host):
        print("audit.py: no such host: %r" % host, file=sys.stderr)
        return 2
    with open(BASELINE, encoding="utf-8") as handle:
        baseline = json.load(handle)
    secrets = {key.lower() for key in baseline.get("secret_keys", [])}
    root = os.path.join(HOSTS, host)
    items = [redact(check(root, item), secrets) for item in baseline["items"]]
    report = {
        "host": host,
        "baseline": baseline["version"],
        "summary": dict(sorted(Counter(i["status"] for i in items).items())),
        "items": items,
    }
    os.makedirs(REPORTS, exist_ok=True)
    with open(os.path.join(REPORTS, host + ".json"), "w", encoding="utf-8") as handle:
        json.dump(report, handle, indent=2, ensure_ascii=False)
        handle.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
AUDIT_PY

# fresh reports, and none but those of the hosts
mkdir -p /app/reports
find /app/reports -mindepth 1 -delete
find /app/hosts -mindepth 1 -maxdepth 1 -type d -printf '%f\0' |
    while IFS= read -r -d '' host; do
        python3 /app/audit.py "$host"
    done
