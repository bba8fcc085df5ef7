# differs: everything is rewritten in one module (shelf/rules.py, the others go away), one regular expression for names, commonpath for the place, O_NOFOLLOW for writing, archives are read whole before anything is written, conflicts in an archive change nothing, other messages; the audit reads the log as bytes
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -eu
cd /app
rm shelf/paths.py shelf/store.py shelf/unpack.py shelf/links.py
cat > shelf/rules.py <<'PY'
"""All the rules of the shelf."""

import hashlib
import hmac
import os
import re
import tarfile

LIMIT = 2 * 1024


class Refusal(Exception):
    status = 2


class Unusable(Refusal):
    status = 2


class Forbidden(Refusal):
    status = 3


class Missing(Refusal):
    status = 4


class TooLarge(Refusal):
    status = 5


def decode(request: bytes) -> str:
    """Rule 1."""
    head, *pieces = request.split(b"%")
    raw = head
    for piece in pieces:
        if not re.match(rb"[0-9A-Fa-f]{2}", piece):
            raise Forbidden("stray percent sign")
        raw += bytes.fromhex(piece[:2].decode("ascii")) + piece[2:]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Forbidden(f"no UTF-8: {error.reason}") from None


def tidy(name: str) -> list:
    """Rule 2. The segments that mean something."""
    if name == "" or name[0] == "/" or "\0" in name:
        raise Forbidden("no usable name")
    segments = [segment for segment in name.split("/") if segment not in ("", ".")]
    for segment in segments:
        if segment[0] == ".":
            raise Forbidden("a segment begins with a dot")
    return segments


def place(root: str, segments: list, write: bool = False) -> str:
    """Rule 3, and the first half of rule 5. The place with all links resolved."""
    root = os.path.realpath(root)
    named = os.path.join(root, *segments)
    real = os.path.realpath(named)
    if os.path.commonpath([root, real]) != root:
        raise Forbidden("outside of the shelf")
    if write and segments and os.path.islink(named):
        raise Forbidden("links are not written through")
    return real


def store(path: str, body: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        file.write(body)


def get(root: str, request: str) -> bytes:
    path = place(root, tidy(decode(os.fsencode(request))))
    if not os.path.isfile(path):
        raise Missing("nothing there to get")
    with open(path, "rb") as file:
        return file.read()


def put(root: str, request: str, stream) -> None:
    path = place(root, tidy(decode(os.fsencode(request))), write=True)
    body = stream.read(LIMIT + 1)
    if len(body) > LIMIT:
        raise TooLarge(f"more than {LIMIT} bytes")
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path)):
        raise Missing("no place to put it")
    if max(len(os.fsencode(part)) for part in path.split("/")) > 255:
        raise Missing("names are not so long")
    store(path, body)


def unpack(root: str, archive: str) -> None:
    plan = []
    kinds = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if not (member.isreg() or member.isdir()):
                    raise Forbidden(f"{member.name!r} is of a kind that is not unpacked")
                path = place(root, tidy(member.name), write=True)
                plan.append((path, tar.extractfile(member).read() if member.isreg() else None))
    except (OSError, EOFError, tarfile.TarError) as error:
        raise Unusable(f"cannot read {archive}: {error}") from None
    for path, body in plan:
        folder = path if body is None else os.path.dirname(path)
        if body is not None and (os.path.isdir(path) or kinds.get(path) == "folder"):
            raise Unusable(f"{path} is a folder")
        while folder not in kinds:
            if os.path.lexists(folder) and not os.path.isdir(folder):
                raise Unusable(f"{folder} is no folder")
            kinds[folder] = "folder"
            folder = os.path.dirname(folder)
        if kinds[folder] != "folder":
            raise Unusable(f"{folder} is no folder")
        if body is not None:
            kinds[path] = "file"
    for path, body in plan:
        if body is None:
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            store(path, body)


def check_link(link: str, key: bytes, now: int) -> str:
    """Rule 7."""
    match = re.fullmatch("([^?\n]+)[?]exp=([0-9]+)&sig=([0-9a-f]{64})", link)
    if match is None:
        raise Forbidden("that is no signed link")
    text = os.fsencode(match[1]) + b"\n" + match[2].encode()
    if not hmac.compare_digest(hmac.new(key, text, hashlib.sha256).hexdigest(), match[3]):
        raise Forbidden("not signed with this key")
    # As text: numbers without leading zeros compare by length, then by digits.
    end, today = match[2].lstrip("0") or "0", str(max(now, 0))
    if now >= 0 and (len(end), end) <= (len(today), today):
        raise Forbidden("too late")
    return match[1]
PY
cat > shelf/__main__.py <<'PY'
"""Command line of the shelf."""

import argparse
import sys

from shelf import rules


def main():
    parser = argparse.ArgumentParser(prog="shelf")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, last in ("get", "request"), ("put", "request"), ("unpack", "archive"):
        command = commands.add_parser(name)
        command.add_argument("--root", required=True)
        command.add_argument(last)
    command = commands.add_parser("check-link")
    command.add_argument("--key-file", required=True)
    command.add_argument("--now", type=int, required=True)
    command.add_argument("link")
    options = parser.parse_args()
    try:
        if options.command == "get":
            sys.stdout.buffer.write(rules.get(options.root, options.request))
        elif options.command == "put":
            rules.put(options.root, options.request, sys.stdin.buffer)
        elif options.command == "unpack":
            rules.unpack(options.root, options.archive)
        else:
            with open(options.key_file, "rb") as file:
                key = file.read().rstrip(b"\n")
            print(rules.check_link(options.link, key, options.now))
    except rules.Refusal as refusal:
        sys.stderr.write(f"shelf {options.command}: {refusal}\n")
        return refusal.status
    return 0


sys.exit(main())
PY
mkdir -p audit
python3 - <<'PY'
import sys
sys.path.insert(0, "/app")
from shelf import rules
with open("/app/logs/access.log", "rb") as log, open("/app/audit/breaches.csv", "wb") as table:
    table.write(b"line,client,request\n")
    for number, line in enumerate(log, 1):
        time, client, status, request = line.rstrip(b"\n").split(b" ", 3)
        if status != b"200":
            continue
        try:
            rules.tidy(rules.decode(request))
        except rules.Forbidden:
            table.write(b"%d,%s,%s\n" % (number, client, request))
PY
SOLVE
