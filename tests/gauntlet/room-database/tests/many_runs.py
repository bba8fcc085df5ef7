"""Runs a subject's program for many cases in one process. `subject.run_many` starts this text as a probe; tests do not import it.

A program that python3 interprets runs in forks of this interpreter, which has imported what the program imports of the standard
library, and is compiled once: without that most of the time of a case is the start of an interpreter. The interpreter stays free of
the subject's code. Other programs are started as they are.
"""

import atexit
import base64
import functools
import gc
import importlib
import itertools
import json
import os
import re
import select
import signal
import sys
import time
import types
import zlib

# Bytes of one stream or file. More than results of tasks have; all together they must fit, compressed, into what a harness takes of one program.
KEPT = 8_000_000
# Modules that are searched for imports. Others are imported by the program itself, which takes a little longer.
MODULES = 100
# Told on standard error, so that the harness knows: on a busy machine it runs the tests again, with more time.
MET_LIMIT = "a program met its time limit"
# As `timeout` reports it, and as a shell reports a program that cannot be started.
TIMED_OUT, NOT_STARTED = 124, 127


def main():
    import site

    # The subject's programs see the same packages as when they are started by themselves.
    site.main()
    own = list(sys.path)
    request = json.load(sys.stdin)
    caches = f"/tmp/{os.urandom(8).hex()}"
    sys.dont_write_bytecode, sys.pycache_prefix = False, caches
    # A collection in a fork would copy the pages of its parent.
    gc.disable()
    end = time.monotonic() + request["timeout"]
    found = []
    for case in request["cases"]:
        for name, content in case["files"].items():
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "wb") as file:
                file.write(base64.b64decode(content))
        for name, target in case["links"].items():
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            if os.path.lexists(name):
                os.unlink(name)
            os.symlink(target, name)
        os.makedirs(case["cwd"], exist_ok=True)
        left = end - time.monotonic()
        if left > 0:
            code, stdout, stderr = execute(case, own, min(case["timeout"], left))
        else:
            code, stdout, stderr = TIMED_OUT, b"", b"not started: the time for all cases was over"
        after = {name: content_of(name) for name in case["after"]}
        found.append([code, *map(coded, (stdout, stderr)), {name: coded(content) for name, content in after.items()}])
    remove(caches)
    if any(code == TIMED_OUT for code, *_ in found):
        print(MET_LIMIT, file=sys.stderr)
    # Results of several megabytes would not come back whole.
    print(base64.b64encode(zlib.compress(json.dumps(found).encode(), 1)).decode())


def coded(content):
    """Base64; a number of bytes in place of what is too long."""
    if content is None:
        return None
    return base64.b64encode(content).decode() if len(content) <= KEPT else KEPT


def remove(folder):
    """Like shutil.rmtree, whose imports would cost more than the removal."""
    try:
        for base, _, names in os.walk(folder, topdown=False):
            for name in names:
                os.unlink(os.path.join(base, name))
            os.rmdir(base)
    except OSError:
        # A program that is still running may write to it.
        pass


def content_of(name):
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read(KEPT + 1)
    except OSError:
        return None


def execute(case, own, timeout):
    argv, stdin = case["argv"], base64.b64decode(case["stdin"])
    # A fork has read its variables already, some of which change how the interpreter works.
    start = None if case["env"] else interpreted(argv, case["cwd"])
    if start is None:
        import subprocess

        try:
            env = {**os.environ, **case["env"]}
            done = subprocess.run(argv, cwd=case["cwd"], input=stdin, capture_output=True, timeout=timeout, env=env)
        except subprocess.TimeoutExpired:
            return TIMED_OUT, b"", b"timed out"
        except OSError as error:
            return NOT_STARTED, b"", str(error).encode()
        return done.returncode, done.stdout, done.stderr
    program = prepared(start, case["cwd"])
    gc.freeze()
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    os.write(streams[0], stdin)
    os.lseek(streams[0], 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        perform(start, program, case["cwd"], own, streams)
    watch = os.pidfd_open(child)
    in_time = bool(select.select([watch], [], [], timeout)[0])
    if not in_time:
        os.kill(child, signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(watch)
    texts = [os.pread(stream, KEPT + 1, 0) for stream in streams[1:]]
    for stream in streams:
        os.close(stream)
    return ended if in_time else TIMED_OUT, *texts


def prepared(start, cwd):
    """The compiled program, if it is a file, after imports of what it and its package import of the standard library."""
    kind, name, _ = start
    place = os.path.join(cwd, name)
    program = text_of(place) if kind == "file" else b""
    texts = [program, *own_modules(os.path.dirname(os.path.realpath(place)))]
    for text in texts:
        for names in re.findall(rb"^[ \t]*(?:import|from)[ \t]+([\w., ]+)", text, re.MULTILINE):
            for word in names.split(b","):
                preload(word.split()[0].decode("ascii", "replace") if word.split() else "")
    return compiled(program, place) if kind == "file" else None


@functools.cache
def own_modules(folder):
    """The texts of modules beside a program, and in folders there."""
    files = [os.path.join(base, name) for base, _, names in itertools.islice(os.walk(folder), MODULES) for name in names if name.endswith(".py")]
    return [text_of(place) for place in sorted(files)[:MODULES]]


def text_of(place):
    try:
        with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read(KEPT + 1)
    except OSError:
        return b""


@functools.cache
def preload(name):
    if name.split(".")[0] in sys.stdlib_module_names - {"antigravity", "this"}:
        try:
            importlib.import_module(name)
        except ImportError:
            pass


@functools.cache
def compiled(text, name):
    try:
        return compile(text, name, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The program itself reports it.
        return None


def interpreted(argv, cwd):
    """How python3 would run it: ("file" or "module", its name, its arguments); None if something else runs it."""
    if argv[0] in ("python3", "/usr/bin/python3") and len(argv) > 1:
        if argv[1] == "-m" and len(argv) > 2:
            return "module", argv[2], argv[2:]
        return None if argv[1].startswith("-") else ("file", argv[1], argv[1:])
    place = os.path.join(cwd, argv[0])
    if "/" not in argv[0] or not os.access(place, os.X_OK):
        return None
    try:
        with open(place, "rb") as file:
            first = file.readline(200)
    except OSError:
        return None
    words = first[2:].split() if first.startswith(b"#!") else []
    if words in ([b"/usr/bin/env", b"python3"], [b"/usr/bin/python3"]):
        return "file", argv[0], argv
    return None


def perform(start, program, cwd, own, streams):
    """Becomes the program; does not return."""
    kind, name, words = start
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(cwd)
        sys.argv = list(words)
        if kind == "module":
            import runpy

            sys.path[:] = [os.getcwd(), *own]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            sys.path[:] = [os.path.dirname(os.path.realpath(name)), *own]
            place = os.path.join(os.getcwd(), name)
            if program is None:
                with open(place, "rb") as file:
                    program = compile(file.read(), place, "exec")
            module = types.ModuleType("__main__")
            module.__file__ = place
            sys.modules["__main__"] = module
            exec(program, module.__dict__)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code and code is not end.code:
            print(end.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            # What the interpreter answers when its output cannot be written at the end.
            code = 120
        finally:
            os._exit(code & 255)


if __name__ == "__main__":
    main()
