"""Runs a subject's program for many cases in one process. `subject.run_many` starts this text as a
probe. Tests do not import it.

A Python program runs in forks of a parent. The parent is an interpreter that has imported the
program's modules of the standard library, and has compiled the program. Otherwise most of the time
of a case would be the start of an interpreter. Each program has its own parent, so that it sees the
same modules as in a plain start. No code of the subject runs in a parent. Other programs are
started plainly, and so are Python programs that might find other modules in a fork. `Limit`,
`run_within` and `tell` come from patience.py: `subject.probe` puts its text in front of this one.
"""

import atexit
import base64
import functools
import gc
import json
import os
import re
import select
import signal
import sys
import types
import warnings
import zlib
from _imp import extension_suffixes
from _weakref import ref

# Bytes that are kept of one stream or file. It is more than any result of a task. All results
# together, compressed, must fit into the output that a harness keeps of one program.
KEPT = 8_000_000
# Maximum number of a program's own modules that are searched for imports. A program with more is
# started plainly.
MODULES = 100
# Maximum number of parents at once. Each case may have another program, and a parent takes about
# ten megabytes.
PARENTS = 8
# Exit status of a program that cannot be started, as in shells.
NOT_STARTED = 127
# Exit status of the interpreter if it cannot write its output at the end.
NOT_WRITTEN = 120
# Bytes that are read from a pipe at once. No pipe holds more.
AT_ONCE = 1 << 20
# No descriptor of a parent is as large as this, because `select` takes no larger ones.
DESCRIPTORS = 1024
# PyCF_ONLY_AST of the module `ast`. Importing `ast` would take longer than everything else.
ONLY_TREE = 0x400
# Modules whose import has a visible effect.
LOUD = {"antigravity", "this"}
# Code by which a program imports from folders other than its own. The modules that it finds there
# are known only when it runs.
SEARCHES = re.compile(rb"\bsys\s*\.\s*path\b|\bsys\s+import\b[^\n]*\bpath\b|\baddsitedir\b")
# The globals that the interpreter gives every program.
FRESH = {name: value for name, value in globals().items() if name.startswith("__")}


def main():
    import site

    # The subject's programs see the same packages as in a plain start.
    site.main()
    request = json.load(sys.stdin)
    caches = f"/tmp/{os.urandom(8).hex()}"
    sys.dont_write_bytecode, sys.pycache_prefix = False, caches
    # A garbage collection in a fork would copy the pages of its parent.
    gc.disable()
    # Settings that an isolated interpreter ignores, and this one is isolated.
    configured = os.path.isdir(site.getusersitepackages()) or any(re.match("PYTHON[A-Z]", name) for name in os.environ)
    whole = Limit(request["timeout"])
    parents = {}
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
        if whole.left > 0:
            # Some variables change how the interpreter works, and a fork has read them already.
            plan = None if configured or case["env"] else planned(case["argv"], case["cwd"])
            limit = Limit(case["timeout"], whole)
            code, stdout, stderr = started(case, limit) if plan is None else forked(plan, parents, case, limit)
        else:
            code, stdout, stderr = TIMED_OUT, b"", b"not started: the time for all cases was over"
        after = {name: content_of(name) for name in case["after"]}
        found.append([code, *map(coded, (stdout, stderr)), {name: coded(content) for name, content in after.items()}])
    while parents:
        dismiss(parents)
    remove(caches)
    # Compressed, because the harness would cut off several megabytes.
    print(base64.b64encode(zlib.compress(json.dumps(found).encode(), 1)).decode())


def coded(content):
    """The content as Base64. If it is too long, the number of its bytes."""
    if content is None:
        return None
    return base64.b64encode(content).decode() if len(content) <= KEPT else KEPT


def remove(folder):
    """Like shutil.rmtree. Its imports would take longer than the removal."""
    try:
        for base, _, names in os.walk(folder, topdown=False):
            for name in names:
                os.unlink(os.path.join(base, name))
            os.rmdir(base)
    except OSError:
        # A program that still runs may write to it.
        pass


def content_of(name):
    """The content of a file, at most one byte more than KEPT. None if it cannot be read."""
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read(KEPT + 1)
    except OSError:
        return None


def started(case, limit):
    try:
        done = run_within(limit, case["argv"], base64.b64decode(case["stdin"]), cwd=case["cwd"], env={**os.environ, **case["env"]})
    except OSError as error:
        return NOT_STARTED, b"", str(error).encode()
    return done.returncode, done.stdout, done.stderr


def forked(plan, parents, case, limit):
    program, words = plan
    if program not in parents:
        if len(parents) == PARENTS:
            dismiss(parents)
        parents[program] = begun(program, parents)
    requests, replies, _ = parents[program]
    send(requests, (words, case["cwd"], case["stdin"], limit.left))
    status, had, *texts = json.loads(replies.readline())
    limit.spend(had)
    return status, *map(base64.b64decode, texts)


def send(pipe, message):
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def planned(argv, cwd):
    """The program as (kind, name, folder of its modules, text, imports), and its arguments. None if
    it must be started plainly.
    """
    interpreted = of_interpreter(argv, cwd)
    if interpreted is None:
        return None
    kind, name, words = interpreted
    cwd = os.path.realpath(cwd)
    if kind == "file":
        name = os.path.join(cwd, name)
        folder, text = os.path.dirname(os.path.realpath(name)), content_of(name)
        # A text that does not compile may be an archive. The interpreter itself must report an
        # error.
        whole = text is not None and len(text) <= KEPT and compiled(text, name) is not None
        texts = [(text, folder)] if whole else []
    else:
        folder, text = cwd, b""
        places = own_files(folder, folder, 0, name, ("__main__",))
        texts = [(content, os.path.dirname(place)) for place in places if (content := content_of(place)) is not None]
    found = imports(folder, texts) if texts and not takes_place(folder) else None
    return None if found is None else ((kind, name, folder, text, found), words)


def of_interpreter(argv, cwd):
    """How python3 would run it: ("file" or "module", its name, its arguments). None if python3 does
    not run it.
    """
    if argv[0] in ("python3", sys.executable) and len(argv) > 1:
        if argv[1] == "-m" and len(argv) > 2:
            return "module", argv[2], ["-m", *argv[3:]]
        return None if argv[1].startswith("-") else ("file", argv[1], argv[1:])
    place = os.path.join(cwd, argv[0])
    if "/" not in argv[0] or not os.access(place, os.X_OK):
        return None
    try:
        with open(place, "rb") as file:
            first = file.readline(200)
    except OSError:
        return None
    # For the kernel, a carriage return at the end is part of the name.
    words = re.split(rb"[ \t]+", first[2:].strip(b" \t\n")) if first.startswith(b"#!") else []
    if words in ([b"/usr/bin/env", b"python3"], [os.fsencode(sys.executable)]):
        return "file", argv[0], argv
    return None


def takes_place(folder):
    """Whether a module in the folder shadows a module of the standard library."""
    endings = (".py", ".pyc", *extension_suffixes())

    def is_module(name):
        stem = name.partition(".")[0]
        if stem not in sys.stdlib_module_names:
            return False
        return name[len(stem) :] in endings or any(os.path.exists(f"{folder}/{name}/__init__{ending}") for ending in endings)

    try:
        return any(map(is_module, os.listdir(folder)))
    except OSError:
        return True


def imports(folder, texts):
    """The imports of the standard library, as (module, names), that a program and its own modules
    make in every run.

    `texts` are the program's texts, each with the folder of its package. None if they might find
    other modules than in a fork.
    """
    found, seen, left = [], set(), [(*text, True) for text in texts]
    while left:
        text, base, sure = left.pop()
        known = imports_of(text)
        if known is None or len(seen) > MODULES:
            return None
        for level, module, names, always in known:
            if level == 0 and module.split(".")[0] in sys.stdlib_module_names:
                if sure and always:
                    found.append((module, names))
                continue
            for place in own_files(folder, base, level, module, names):
                visit = (place, sure and always)
                if visit not in seen and (content := content_of(place)) is not None:
                    seen.add(visit)
                    left.append((content, os.path.dirname(place), sure and always))
    return tuple(dict.fromkeys(found))


def own_files(folder, base, level, module, names):
    """The program's own files that an import may load. Its modules are in `folder`, and the
    importing package is in `base`.
    """
    for _ in range(level - 1):
        base = os.path.dirname(base)
    parts = module.split(".") if module else []
    top = base if level else folder
    paths = ["/".join([top, *parts[:count]]) for count in range(1, len(parts) + 1)]
    paths += ["/".join([top, *parts, name]) for name in names]
    return [path + ending for path in paths for ending in (".py", "/__init__.py")]


@functools.cache
def imports_of(text):
    """The imports in a text, as (level, module, names, whether they happen in every run). None if
    it may search other folders.
    """
    if SEARCHES.search(text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            left = [(node, True) for node in compile(text, "module", "exec", ONLY_TREE, dont_inherit=True).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = []
    while left:
        node, always = left.pop(0)
        kind = type(node).__name__
        if kind == "Import":
            found += [(0, alias.name, (), always) for alias in node.names]
        elif kind == "ImportFrom":
            found.append((node.level, node.module or "", tuple(alias.name for alias in node.names), always))
        else:
            parts = [getattr(node, part, ()) for part in ("body", "orelse", "handlers", "finalbody", "cases")]
            left += [(inner, False) for part in parts if isinstance(part, list) for inner in part]
    return tuple(found)


@functools.cache
def compiled(text, name):
    """The compiled text. None if compiling gives an error or a warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            return compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def begun(program, parents):
    """Starts a parent for forks of a program. Returns files for requests and replies, and its
    process.
    """
    (asked, ask), (answered, answer) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(ask)
            os.close(answered)
            # A parent ends when its files are closed everywhere, so this one must not hold the
            # files of others.
            for requests, replies, _ in parents.values():
                requests.close()
                replies.close()
            serve(program, open(asked, "rb"), open(answer, "wb"))
        finally:
            os._exit(0)
    os.close(asked)
    os.close(answer)
    return open(ask, "wb"), open(answered, "rb"), process


def dismiss(parents):
    """Ends the oldest parent."""
    requests, replies, process = parents.pop(next(iter(parents)))
    requests.close()
    replies.close()
    os.waitpid(process, 0)


def serve(program, requests, replies):
    kind, name, folder, text, found = program
    code = compiled(text, name) if kind == "file" else None
    if kind == "module":
        # The interpreter itself imports it for `-m`.
        found = (("runpy", ()), *found)
    for module, names in found:
        preload(module, names)
    gc.freeze()
    for line in requests:
        words, cwd, stdin, seconds = json.loads(line)
        limit = Limit(seconds)
        status, *texts = run(code, name, [folder, *sys.path], words, cwd, base64.b64decode(stdin), limit)
        send(replies, (status, limit.had, *(base64.b64encode(text).decode() for text in texts)))


def preload(module, names):
    if module in LOUD or module.startswith("__"):
        return
    try:
        with warnings.catch_warnings():
            # Whether a warning is shown depends on the importing code.
            warnings.simplefilter("error")
            __import__(module, None, None, names)
    except Exception:
        # The program itself will report the error.
        pass


def run(code, name, path, words, cwd, stdin, limit):
    """Runs a program in a fork. Returns its status, standard output and standard error."""
    (given, give), (out, put_out), (err, put_err) = (os.pipe() for _ in range(3))
    child = os.fork()
    if child == 0:
        become(code, name, path, words, cwd, (given, put_out, put_err))
    for stream in (given, put_out, put_err):
        os.close(stream)
    os.set_blocking(give, False)
    watch = os.pidfd_open(child)
    texts, stdin = {out: bytearray(), err: bytearray()}, memoryview(stdin)
    taking, giving, ended, in_time = [out, err], [give], False, True
    while not ended:
        ready, writable, _ = select.select([watch, *taking], giving, [], LOOK if in_time else None)
        # Read once more after the program has ended, and then stop: processes that it left behind
        # may write for ever.
        ended = watch in ready
        for stream in select.select(taking, [], [], 0)[0]:
            content = os.read(stream, AT_ONCE)
            texts[stream] += content[: KEPT + 1 - len(texts[stream])]
            if not content:
                taking.remove(stream)
        if writable:
            try:
                stdin = stdin[os.write(give, stdin[:AT_ONCE]) :]
            except BrokenPipeError:
                stdin = b""
            if not stdin:
                os.close(giving.pop())
        if in_time and not ended and limit.met():
            in_time = False
            os.kill(child, signal.SIGKILL)
            tell()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for stream in (watch, *texts, *giving):
        os.close(stream)
    return status if in_time else TIMED_OUT, *map(bytes, texts.values())


def become(code, name, path, words, cwd, streams):
    """Runs the program in this process, as the interpreter would. Does not return."""
    status, interrupted, shared = 1, False, dict(sys.modules)
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, DESCRIPTORS)
        os.chdir(cwd)
        sys.argv, sys.path[:] = list(words), path
        sys.modules["__main__"] = types.ModuleType("__main__")
        vars(sys.modules["__main__"]).update(FRESH, __doc__=None)
        gc.enable()
        if code is None:
            import runpy

            runpy._run_module_as_main(name)
        else:
            vars(sys.modules["__main__"]).update(__file__=name, __loader__=type(__loader__)("__main__", name))
            exec(code, vars(sys.modules["__main__"]))
        status = 0
    except SystemExit as error:
        status, code = asked_for(error), None
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        # The traceback must not show this function.
        status = reported(error.with_traceback(error.__traceback__.tb_next))
    finally:
        if code is not None:
            # The interpreter removes them at the end of a script, unless SystemExit ended it.
            for gone in ("__file__", "__cached__"):
                vars(sys.modules["__main__"]).pop(gone, None)
        leave(status, interrupted, shared)


def asked_for(error):
    """The status that a SystemExit asks for. Prints its message."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        # The interpreter accepts a C long.
        return error.code & 255 if -(2**63) <= error.code < 2**63 else 255
    print(error.code, file=sys.stderr or sys.__stderr__)
    return 1


def reported(error):
    """Prints an exception that the program did not catch, and returns the exit status."""
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as end:
        return asked_for(end)
    except BaseException:
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 1


def leave(status, interrupted, shared):
    """Ends this process as the interpreter does: threads, exit functions, output, and finally
    objects with effects on deletion.

    The interpreter itself would also destroy objects that are shared with the parent. That takes
    several times as long.
    """
    written = []
    steps = (
        getattr(sys.modules.get("threading"), "_shutdown", int),
        atexit._run_exitfuncs,
        lambda: written.append(flushed()),
        # The remaining threads are daemons. The interpreter stops them here. Running on, they would
        # miss deleted objects.
        lambda: len(sys._current_frames()) == 1 and forget(shared),
        lambda: written.append(flushed()),
        # sys.stdout and sys.stderr may have been replaced.
        lambda: sys.__stdout__.flush(),
        lambda: sys.__stderr__.flush(),
        lambda: interrupted and (signal.signal(signal.SIGINT, signal.SIG_DFL), os.kill(os.getpid(), signal.SIGINT)),
    )
    for step in steps:
        try:
            step()
        except BaseException:
            pass
    os._exit(status if all(written) else NOT_WRITTEN)


def flushed():
    """Flushes the output. Returns whether it could be written."""
    written = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException:
            written = False
    return written


def forget(shared):
    """Deletes the modules that the parent does not have, in the interpreter's order. Open files are
    written by that.
    """
    # After a collection a file comes before its buffer, and they are deleted in this order.
    gc.collect()
    left = []
    for name, module in list(sys.modules.items()):
        if shared.get(name) is not module:
            del sys.modules[name]
            if isinstance(module, types.ModuleType):
                left.append(ref(module))
    del module
    gc.collect()
    for found in reversed(left):
        if (module := found()) is not None:
            names = [name for name in vars(module) if name != "__builtins__"]
            hidden = [name for name in names if name.startswith("_") and not name.startswith("__")]
            for name in hidden + names:
                vars(module)[name] = None
        del module
    gc.collect()


if __name__ == "__main__":
    main()
