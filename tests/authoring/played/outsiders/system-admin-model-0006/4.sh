#!/bin/bash
# Violates: "After files were changed, added or removed, another run leaves in both tables exactly the rows that a load into a new database would give. Both tables always exist"
# Shown by: remove all files of /app/crontabs (the folder stays, empty) and run again: both tables must be empty (and exist, if there was no database);
#   but with nothing to load it ends at once, and the old rows remain, or there is no database
set -euo pipefail

mkdir -p /app/bin
cat > /app/bin/cronload <<'PY'
#!/usr/bin/env -S python3 -I
"""Load the saved crontabs of /app/crontabs into /app/schedule.db."""
import os
import re
import sqlite3
import sys

FOLDER = b"/app/crontabs"
DATABASE = "/app/schedule.db"

WS = " \t\r"
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t\r]*=")
JOB = re.compile(r"([^ \t\r]+)[ \t\r]+" * 5 + r"(.+)", re.DOTALL)
ELEMENT = re.compile(r"(?:(\*)|([0-9]+)(?:-([0-9]+))?)(?:/([0-9]+))?")
LARGE = 100000          # beyond every range, so as good as any larger number


def number(digits):
    digits = digits.lstrip("0") or "0"
    return LARGE if len(digits) > 5 else int(digits)


def field(text, low, high):
    """The set of values of a field, or None if it is not valid."""
    values = set()
    for element in text.split(","):
        match = ELEMENT.fullmatch(element)
        if not match:
            return None
        star, first, last, step = match.groups()
        if step is not None:
            if not star and last is None:
                return None
            step = number(step)
            if step < 1:
                return None
        else:
            step = 1
        if star:
            a, b = low, high
        else:
            a = number(first)
            b = a if last is None else number(last)
            if not low <= a <= b <= high:
                return None
        values.update(range(a, b + 1, step))
    return values


def job(text):
    """Minutes, hours and command of a stripped line, or None."""
    match = JOB.fullmatch(text)
    if not match:
        return None
    fields = []
    for part, (low, high) in zip(match.groups(), RANGES):
        values = field(part, low, high)
        if values is None:
            return None
        fields.append(values)
    return sorted(fields[0]), sorted(fields[1]), match.group(6)


def parse(texts):
    jobs, rejects = [], []
    for user, text in texts:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        for count, line in enumerate(lines, 1):
            bare = line.strip(WS)
            if not bare or bare[0] == "#" or VARIABLE.match(bare):
                continue
            found = job(bare)
            if found is None:
                rejects.append((user, count, line))
            else:
                jobs.append((user, count) + found)
    return jobs, rejects


def rows(jobs):
    for user, count, minutes, hours, command in jobs:
        for hour in hours:
            for minute in minutes:
                yield user, count, minute, hour, command


def store(jobs, rejects):
    db = sqlite3.connect(DATABASE, timeout=30, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = MEMORY").fetchall()
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("BEGIN IMMEDIATE")
        try:
            old = db.execute(
                "SELECT type, name FROM sqlite_master WHERE type IN"
                " ('table', 'view') AND lower(name) IN ('jobs', 'rejects')"
            ).fetchall()
            for kind, name in old:
                db.execute('DROP %s "%s"' % (kind, name))
            db.execute("CREATE TABLE jobs (user TEXT, line INTEGER,"
                       " minute INTEGER, hour INTEGER, command TEXT)")
            db.execute("CREATE TABLE rejects (user TEXT, line INTEGER,"
                       " text TEXT)")
            db.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?, ?)",
                           rows(jobs))
            db.executemany("INSERT INTO rejects VALUES (?, ?, ?)", rejects)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    finally:
        db.close()


def main():
    if len(sys.argv) > 1:
        sys.stderr.write("usage: cronload\n")
        return 2
    texts, bad = [], []
    for name in sorted(os.listdir(FOLDER)):
        path = os.path.join(FOLDER, name)
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as handle:
            data = handle.read()
        try:
            texts.append((name.decode("utf-8"), data.decode("utf-8")))
        except UnicodeDecodeError:
            bad.append(name)
    if bad:
        sys.stderr.flush()
        for name in bad:
            sys.stderr.buffer.write(
                b"cronload: not valid UTF-8: " + name + b"\n")
        sys.stderr.buffer.flush()
        return 1
    if not texts:
        return 0            # nothing to load
    jobs, rejects = parse(texts)
    try:
        store(jobs, rejects)
    except sqlite3.DatabaseError as error:
        # A damaged file, or none of SQLite's: begin a new one.
        if getattr(error, "sqlite_errorcode", None) not in (
                sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        with open(DATABASE, "wb"):
            pass
        store(jobs, rejects)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, sqlite3.Error) as error:
        sys.stderr.write("cronload: %s\n" % error)
        sys.exit(1)
PY
chmod 755 /app/bin/cronload

/app/bin/cronload
