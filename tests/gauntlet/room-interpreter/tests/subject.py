"""How tests reach what a solver left: the subject.

The tests read a copy of the subject under $SUBJECT_ROOT, which run_checks.py has made. The subject lies in its own place too, e.g. /app,
where tools of the tests find it if they follow an absolute path. In termsmith's clean room its programs run in another container,
reached through $TERMSMITH_RELAY. Under Harbor they run as another user in the tests' container (`beside`). One test file serves all.

Everything here raises AssertionError with a plain sentence when the subject is at fault.
"""

import base64
import csv
import hashlib
import io
import itertools
import json
import os
import pathlib
import socket
import stat
import zlib
from collections import namedtuple

import beside

ROOT = pathlib.Path(os.environ.get("SUBJECT_ROOT") or "/")
RELAY = os.environ.get("TERMSMITH_RELAY")
TESTS = pathlib.Path(__file__).resolve().parent
PRISTINE = pathlib.Path(os.environ.get("SUBJECT_PRISTINE") or TESTS / "pristine")
# Factor for time limits: more than 1 where the tests run again because the machine had no time for the programs.
PATIENCE = float(os.environ.get("TERMSMITH_PATIENCE") or 1)

# A result file larger than this is a mistake or an attack; reading it would only exhaust the verifier.
MAX_BYTES = 32 * 1024 * 1024
# As many links as the kernel follows in one look-up.
MAX_LINKS = 40
# EX_IOERR of sysexits.h; pytest itself ends with 0 to 5.
RELAY_BROKEN = 74
CLEAN_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}

Result = namedtuple("Result", "code stdout stderr")


def pristine(name):
    """The untampered copy of an environment file, e.g. pristine("app/data.csv"), as a pathlib.Path."""
    return PRISTINE / name


def lpath(name):
    """Where the subject's file is (a pathlib.Path), a link in the last place not followed."""
    return _resolve(name, follow_last=False)


def path(name):
    """Where the subject's file is (a pathlib.Path). Links are followed inside the subject and never out of it."""
    return _resolve(name, follow_last=True)


def exists(name):
    """Whether the subject has anything at this path."""
    return path(name).exists()


def listdir(name):
    """Sorted names in one of the subject's folders."""
    place = path(name)
    assert place.is_dir(), f"{name} is not a folder"
    return sorted(os.listdir(place))


def read_bytes(name):
    """The bytes of one of the subject's regular files."""
    place = path(name)
    assert place.exists(), f"{name} does not exist"
    found = place.stat()
    assert stat.S_ISREG(found.st_mode), f"{name} is not a regular file"
    assert found.st_size <= MAX_BYTES, f"{name} is larger than {MAX_BYTES} bytes"
    return place.read_bytes()


def read_text(name):
    """The text of one of the subject's files, which must be UTF-8."""
    try:
        return read_bytes(name).decode("utf-8")
    except UnicodeDecodeError as error:
        raise AssertionError(f"{name} is not UTF-8: {error}") from None


def read_json(name):
    """One of the subject's files, parsed as JSON."""
    try:
        return json.loads(read_text(name))
    except (json.JSONDecodeError, RecursionError) as error:
        raise AssertionError(f"{name} is not JSON: {error}") from None


def read_csv(name):
    """One of the subject's CSV files as a list of dicts, by its header row."""
    text = read_text(name)
    try:
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise AssertionError(f"{name} is not CSV: {error}") from None


def run(argv, stdin=None, cwd=None, timeout=10, files=None, env=None):
    """Runs one of the subject's programs and returns Result(code, stdout, stderr); 124 after a time-out.

    On a busy machine the program has up to five times as long. Once programs have lost a minute to their limits, each later one has a second.
    `files` (path -> text or bytes) are written first, for inputs the solver has never seen.
    """
    request = {
        "argv": [str(word) for word in argv],
        "stdin": _to_bytes(stdin or b""),
        "cwd": str(cwd or _workdir()),
        "timeout": timeout * PATIENCE,
        "files": {str(name): _to_bytes(content) for name, content in (files or {}).items()},
        "env": {**CLEAN_ENV, **(env or {})},
    }
    code, stdout, stderr = _run_by_relay(request) if RELAY else beside.run(request)
    return Result(code, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def probe(text, request, timeout=10):
    """Runs a Python program of the tests' own beside the subject's programs, with `request` as JSON on its standard input.

    It returns a Result, starts isolated, without site packages and in a new folder, so that no module of the subject's takes the place of
    one of the standard library. Its interpreter is the subject's all the same, so that its answers prove nothing by themselves: see `answers`.
    What it starts itself it limits by `run_within(Limit(seconds), argv)` and `wait_within(Limit(seconds), child)` of patience.py, which are there.
    """
    folder = f"/tmp/{os.urandom(8).hex()}"
    place = f"{folder}/probe.py"
    argv = ["python3", "-I", "-S", "-B", place]
    text = f"{(TESTS / 'patience.py').read_text()}\n{text}"
    env = {"TIME_FACTOR": f"{PATIENCE:g}"} if PATIENCE > 1 else {}
    return run(argv, stdin=json.dumps(request), cwd=folder, timeout=timeout, files={place: text}, env=env)


def folder():
    """The path of a folder below /tmp for one case, another one each time; it does not exist yet. Its name tells a program nothing."""
    text = (TESTS / "test_outputs.py").read_bytes()
    return f"/tmp/{hashlib.sha256(b'%d ' % next(_folders) + text).hexdigest()[:16]}"


# Counted, so that the same tests have the same folders and messages in every run; hashed with the tests, which no solver has seen.
_folders = itertools.count()
Case = namedtuple("Case", "argv stdin cwd files after timeout env links", defaults=(b"", None, {}, (), 10, {}, {}))
Ended = namedtuple("Ended", "code stdout stderr after raw")


def run_many(cases, timeout=45):
    """Runs programs of the subject one after the other, as `run` would, in one process, and returns an Ended for each Case.

    `files` (path -> text or bytes), then `links` (path -> target of a symbolic link) are made first, and `env` is added to the environment. `after` names
    files whose content is wanted afterwards: `Ended.after` has it by name as text, `Ended.raw` as bytes, None where there is no file. A program that python3 interprets runs in a fork of an
    interpreter that has imported the standard library, which saves most of its time. All cases together have `timeout` seconds.
    """
    coded = [
        {
            "argv": [str(word) for word in case.argv],
            "stdin": base64.b64encode(_to_bytes(case.stdin)).decode(),
            "cwd": str(case.cwd or _workdir()),
            "files": {str(name): base64.b64encode(_to_bytes(content)).decode() for name, content in case.files.items()},
            "after": [str(name) for name in case.after],
            "timeout": case.timeout,
            "env": {str(name): str(value) for name, value in case.env.items()},
            "links": {str(name): str(target) for name, target in case.links.items()},
        }
        for case in cases
    ]
    request = {"cases": coded, "timeout": timeout}
    found = answers(_inflated(probe((TESTS / "many_runs.py").read_text(), request, timeout=timeout + 5)), len(cases), list)
    return [_ended(case, answer) for case, answer in zip(cases, found, strict=True)]


def _inflated(result):
    """The result, with the JSON that many_runs.py has compressed."""
    if result.code != 0:
        return result
    try:
        inflating = zlib.decompressobj()
        text = inflating.decompress(base64.b64decode(result.stdout, validate=False), MAX_BYTES)
    except (ValueError, zlib.error):
        raise AssertionError(f"what the programs wrote cannot be read, or is too much: {result.stdout[:100]!r}") from None
    assert inflating.eof, f"the programs wrote more than {MAX_BYTES} bytes"
    return result._replace(stdout=text.decode("utf-8", "replace"))


def _ended(case, answer):
    def text(coded):
        return None if coded is None else base64.b64decode(coded).decode("utf-8", "replace")

    try:
        code, stdout, stderr, after = answer
        coded = {str(name): after[str(name)] for name in case.after}
        for name, content in [("standard output", stdout), ("standard error", stderr), *coded.items()]:
            assert not isinstance(content, int), f"{name} of `{' '.join(map(str, case.argv))[:100]}` has more than {content} bytes"
        raw = {name: None if content is None else base64.b64decode(content) for name, content in coded.items()}
        return Ended(int(code), text(stdout), text(stderr), {name: text(content) for name, content in coded.items()}, raw)
    except (TypeError, ValueError, KeyError):
        raise AssertionError(f"an answer is {str(answer)[:100]!r}") from None


def answers(result, count, kind=dict):
    """The JSON list of exactly `count` answers, each of this type, that a program of the subject's printed.

    Whoever replaced the program chooses what it prints: fewer answers would be compared with nothing.
    """
    assert result.code == 0, f"the program could not be tried: status {result.code}, {result.stderr[-300:]}"
    try:
        found = json.loads(result.stdout)
    except (json.JSONDecodeError, RecursionError) as error:
        raise AssertionError(f"the program's answers are not JSON: {error}") from None
    assert isinstance(found, list), f"the program's answers are {str(found)[:100]!r} and not a list"
    assert len(found) == count, f"{len(found)} answers instead of {count}"
    for answer in found:
        assert isinstance(answer, kind), f"an answer is {str(answer)[:100]!r}"
    return found


def _workdir():
    return os.environ.get("SUBJECT_WORKDIR") or "/app"


def _to_bytes(content):
    return content if isinstance(content, bytes) else str(content).encode("utf-8")


def _resolve(name, follow_last):
    left = [part for part in str(name).split("/") if part not in ("", ".")]
    done = []
    links = 0
    while left:
        part = left.pop(0)
        if part == "..":
            done = done[:-1]
            continue
        here = ROOT.joinpath(*done, part)
        if (left or follow_last) and here.is_symlink():
            links += 1
            assert links <= MAX_LINKS, f"{name} leads through too many links"
            target = os.readlink(here)
            if target.startswith("/"):
                done = []
            left = [step for step in target.split("/") if step not in ("", ".")] + left
            continue
        done.append(part)
    return ROOT.joinpath(*done)


def _run_by_relay(request):
    coded = dict(request)
    coded["stdin"] = base64.b64encode(request["stdin"]).decode()
    coded["files"] = {name: base64.b64encode(content).decode() for name, content in request["files"].items()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.connect(RELAY)
        wire.sendall(json.dumps(coded).encode())
        wire.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := wire.recv(1 << 16):
            answer += chunk
    reply = json.loads(answer)
    if "error" in reply:
        # Not the subject's fault, so no check may fail for it: the whole run ends without a verdict.
        import pytest

        pytest.exit(f"relay: {reply['error']}", returncode=RELAY_BROKEN)
    return reply["code"], base64.b64decode(reply["stdout"]), base64.b64decode(reply["stderr"])
