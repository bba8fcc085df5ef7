"""Runs the subject's programs in the tests' own container, for harnesses without a second container
(Harbor, both modes).

The tests read a copy of the subject. It was made before the subject's first program ran, and only
root can reach it. Programs run at their original paths, as another user, without new privileges,
and in a session of their own. Their time, output and processes are limited. All of them are killed
after each call. So no program of the subject reaches the tests, their copy, or the results.
"""

import ctypes
import os
import pathlib
import random
import resource
import selectors
import shutil
import signal
import stat
import subprocess
import tempfile
import time

from patience import LOOK, MET_LIMIT, TIMED_OUT, Limit


def _free_ids():
    """Two user ids that other containers do not use. The kernel counts processes, pipes and watches
    of a user over the whole host.

    They are drawn from the upper half of the ids of this user namespace, e.g. 32768 to 65535 in a
    rootless container.
    """
    try:
        with open("/proc/self/uid_map") as file:
            inside, _, count = max((list(map(int, line.split())) for line in file), key=lambda ids: ids[2])
    except (OSError, ValueError):
        inside, count = 0, 1 << 16
    # Some programs read an id as a signed number.
    half = min(count, 1 << 31) // 2
    first = inside + half + 2 * random.SystemRandom().randrange(half // 2)
    return first, first + 1


# USER runs the subject's programs, and owns no file of the image.
# A process with KILLER as real and saved id cannot be signalled by USER, but can send signals as
# USER.
USER, KILLER = _free_ids()
# Bounds of a copy, as in termsmith's clean room.
MAX_COPY_BYTES = 256 * 1024 * 1024
MAX_COPY_ENTRIES = 100_000
MAX_COPY_DEPTH = 64
# Bytes that are kept of each output stream of a program.
MAX_OUTPUT = 4 * 1024 * 1024
# More processes than any program of a task needs, and few enough to be killed in one pass.
MAX_PROCESSES = 512
# Largest file that a program may write.
MAX_FILE_BYTES = 1024 * 1024 * 1024
PIECE = 1 << 16
PR_SET_NO_NEW_PRIVS = 38
# Seconds that a program may be stopped by a signal, because nobody would continue it. Then the same
# after one was killed for it.
MAX_STOPPED, MAX_STOPPED_AGAIN = 5, 0.1
# Exit statuses, as in shells.
NOT_STARTED, BY_SIGNAL = 127, 128
# Hanging programs must not use up the time of all checks. After MAX_LOST seconds in programs that
# met their limits, later ones get SHORT seconds.
MAX_LOST, SHORT = 60, 1

# Set if checks look at owners, or at system files that only root can read. Then programs run as
# root, and nothing is hidden.
AS_ROOT = os.environ.get("SUBJECT_AS_ROOT") == "1"

_libc = ctypes.CDLL(None, use_errno=True)
_home = "/root"
_stopped_before = False
# The limits of all programs that were started.
_limits = []
# Whether a program that a probe started met its limit.
_met_in_a_probe = False


class TooLarge(Exception):
    """The subject is larger than any result of a task."""


def take(roots, hidden):
    """Copies `roots` of the subject for the tests, gives the originals to the programs' user, and
    returns the folder of the copies.

    Folders in `hidden` become root's alone.
    """
    global _home
    if AS_ROOT:
        return pathlib.Path("/")
    for folder in hidden:
        os.chmod(folder, 0o700)
    copies = pathlib.Path(tempfile.mkdtemp(prefix="subject-", dir="/var/tmp"))
    left = [MAX_COPY_BYTES, MAX_COPY_ENTRIES]
    for root in roots:
        if os.path.lexists(root):
            target = copies / root.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(root, target, left, 0, {})
            _give(root)
    _home = tempfile.mkdtemp(prefix="home-", dir="/tmp")
    os.chown(_home, USER, USER)
    _name_user()
    return copies


def _name_user():
    """Gives the programs' user a name: some programs end if their user has none, e.g. PostgreSQL's.
    """
    lines = {"/etc/passwd": f"subject:x:{USER}:{USER}::{_home}:/bin/sh\n", "/etc/group": f"subject:x:{USER}:\n"}
    for name, line in lines.items():
        try:
            with open(name, "a") as file:
                file.write(line)
        except OSError:
            # E.g. a read-only file system.
            pass


def place(received, roots):
    """Copies `roots` of the subject from `received` to their own places, and returns the folder
    that the tests read.

    A tool of the tests may follow an absolute path, e.g. git with `objects/info/alternates`. It
    then finds the solver's files there, and not the task's pristine ones. The tests read another
    folder, whose name no solver knows. Files in the places have no execute bit. An interpreter
    could still run them, so tests start the subject's programs only by `run`.
    """
    copies = pathlib.Path(tempfile.mkdtemp(prefix="subject-", dir="/var/tmp"))
    if os.path.isdir(received):
        for name in os.listdir(received):
            os.rename(os.path.join(received, name), copies / name)
        os.rmdir(received)
    left = [MAX_COPY_BYTES, MAX_COPY_ENTRIES]
    for root in roots:
        if os.path.realpath(os.path.dirname(root)) != os.path.dirname(root):
            # A link of the image: the files would get into another folder, e.g. those of /var/run
            # into /run.
            continue
        if os.path.isdir(root) and not os.path.islink(root):
            shutil.rmtree(root)
        elif os.path.lexists(root):
            os.unlink(root)
        source = copies / root.lstrip("/")
        if os.path.lexists(source):
            os.makedirs(os.path.dirname(root), exist_ok=True)
            _copy(source, root, left, 0, {}, modes=0o1666)
    return copies


def _copy(source, target, left, depth, copied, modes=0o1777):
    """Copies files with modes, owners and links, but no devices, FIFOs, sockets or set-id bits.
    Links are never followed.

    `copied` has the copies of files with several names. Such a file is written once, e.g. a file of
    `git clone --local`.
    """
    found = os.lstat(source)
    left[1] -= 1
    if left[1] < 0 or depth > MAX_COPY_DEPTH:
        raise TooLarge(f"{source}: more than {MAX_COPY_ENTRIES} entries, or more than {MAX_COPY_DEPTH} levels")
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), target)
        os.lchown(target, found.st_uid, found.st_gid)
        return
    if stat.S_ISDIR(found.st_mode):
        os.mkdir(target)
        for entry in os.scandir(source):
            _copy(entry.path, os.path.join(target, entry.name), left, depth + 1, copied, modes)
    elif stat.S_ISREG(found.st_mode):
        if found.st_nlink > 1:
            first = copied.setdefault((found.st_dev, found.st_ino), target)
            if first != target and _link(first, target):
                return
        left[0] -= found.st_size
        if left[0] < 0:
            raise TooLarge(f"{source}: more than {MAX_COPY_BYTES} bytes")
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as reading, open(target, "xb") as writing:
            shutil.copyfileobj(reading, writing, PIECE)
    else:
        return
    os.chown(target, found.st_uid, found.st_gid)
    os.chmod(target, stat.S_IMODE(found.st_mode) & (modes if stat.S_ISREG(found.st_mode) else 0o1777))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _link(first, target):
    """Gives the copy `first` the name `target` too. False if the file system allows no more names.
    """
    try:
        os.link(first, target)
        return True
    except OSError:
        return False


def _give(place):
    found = os.lstat(place)
    os.lchown(place, USER, USER)
    if stat.S_ISDIR(found.st_mode):
        for entry in os.scandir(place):
            _give(entry.path)
    elif stat.S_ISREG(found.st_mode):
        # Changing the owner clears set-id bits. They must stay cleared.
        os.chmod(place, stat.S_IMODE(found.st_mode) & 0o1777)


def run(request):
    """Runs one program as `subject.run` describes it; returns status, standard output and standard
    error.
    """
    env = dict(request["env"])
    if env.get("HOME") == "/root":
        env["HOME"] = _home
    try:
        child = subprocess.Popen(
            request["argv"], env=env, start_new_session=True, preexec_fn=lambda: _become(request),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    except (OSError, subprocess.SubprocessError) as error:
        kill_all(None)
        return NOT_STARTED, b"", str(error).encode()
    limit = Limit(min(request["timeout"], SHORT) if _lost() >= MAX_LOST else request["timeout"])
    _limits.append(limit)
    global _met_in_a_probe
    try:
        result = _collect(child, request["stdin"], limit)
        _met_in_a_probe |= MET_LIMIT.encode() in result[2]
        return result
    finally:
        kill_all(child)
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()
        child.wait()


def _lost():
    """Seconds that were lost in programs that met their limits."""
    return sum(limit.had for limit in _limits if limit.left <= 0)


def took_the_time(seconds):
    """Whether the subject's programs are the reason that the checks took too long: one met its
    limit, or they used half of the time.
    """
    return _met_in_a_probe or _lost() > 0 or sum(limit.had for limit in _limits) >= seconds / 2


def _become(request):
    """Runs in the child before the program. From here on, everything happens with the rights of the
    programs' user.
    """
    if not AS_ROOT:
        resource.setrlimit(resource.RLIMIT_NPROC, (MAX_PROCESSES, MAX_PROCESSES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not AS_ROOT:
        _give_up_rights()
    os.umask(0o022)
    for name, content in request["files"].items():
        place = pathlib.Path(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink() or place.exists():
            place.unlink()
        place.write_bytes(content)
    os.chdir(request["cwd"])


def _give_up_rights():
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _collect(child, stdin, limit):
    kept = {child.stdout: bytearray(), child.stderr: bytearray()}
    global _stopped_before
    timed_out = False
    stopped_since = None
    with selectors.DefaultSelector() as ready:
        for stream in kept:
            os.set_blocking(stream.fileno(), False)
            ready.register(stream, selectors.EVENT_READ)
        os.set_blocking(child.stdin.fileno(), False)
        unsent = memoryview(stdin)
        ready.register(child.stdin, selectors.EVENT_WRITE)
        while ready.get_map():
            if child.poll() is not None:
                # Processes that it left behind keep the pipes open.
                kill_all(child)
            elif limit.met():
                timed_out = True
                kill_all(child)
            elif not _is_stopped(child):
                stopped_since = None
            elif stopped_since is None:
                stopped_since = time.monotonic()
            elif time.monotonic() >= stopped_since + (MAX_STOPPED_AGAIN if _stopped_before else MAX_STOPPED):
                _stopped_before = True
                kill_all(child)
            # A short wait, to notice the end of a program whose pipes other processes still hold.
            for key, _ in ready.select(LOOK):
                if key.fileobj is child.stdin:
                    unsent = _send(child.stdin, unsent)
                    if not unsent:
                        ready.unregister(child.stdin)
                        child.stdin.close()
                elif not _receive(key.fileobj, kept[key.fileobj]):
                    ready.unregister(key.fileobj)
            if child.poll() is not None and child.stdin in [key.fileobj for key in ready.get_map().values()]:
                ready.unregister(child.stdin)
    while child.poll() is None:
        time.sleep(LOOK / 10)
        if limit.met():
            timed_out = True
            kill_all(child)
            child.wait()
    code = child.returncode if child.returncode >= 0 else BY_SIGNAL - child.returncode
    return TIMED_OUT if timed_out else code, bytes(kept[child.stdout]), bytes(kept[child.stderr])


def _is_stopped(child):
    try:
        return os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        # It has ended since the last look.
        return False


def _send(stream, unsent):
    try:
        return unsent[os.write(stream.fileno(), unsent[:PIECE]):] if unsent else unsent
    except BlockingIOError:
        return unsent
    except BrokenPipeError:
        return unsent[:0]


def _receive(stream, kept):
    """Reads a piece. False at the end of the stream."""
    try:
        piece = os.read(stream.fileno(), PIECE)
    except BlockingIOError:
        return True
    kept += piece[:max(0, MAX_OUTPUT - len(kept))]
    return bool(piece)


def kill_all(child):
    """Kills every process of the programs' user, because processes can leave a session or group.
    Processes of root are killed by group.
    """
    if AS_ROOT:
        try:
            if child:
                os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        return
    for _ in range(100):
        pid = os.fork()
        if pid == 0:
            try:
                # As the programs' user, it could be killed or stopped by a faster program.
                os.setgroups([])
                os.setresgid(KILLER, KILLER, KILLER)
                os.setresuid(KILLER, USER, KILLER)
                os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        if not _alive():
            return
        time.sleep(0.01)


def _alive():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                # A program chooses its own name, which may not be UTF-8.
                with open(f"/proc/{name}/status", errors="replace") as file:
                    lines = dict(line.split(":", 1) for line in file if ":" in line)
            except OSError:
                continue
            if str(USER) in lines.get("Uid", "").split() and any(map(_runs, _tasks(name))):
                return True
    return False


def _tasks(process):
    try:
        return [f"/proc/{process}/task/{task}/status" for task in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return []


def _runs(status):
    """Whether a thread of the process is alive and not exiting. Threads can outlive the main
    thread.
    """
    try:
        with open(status, errors="replace") as file:
            state = next((line for line in file if line.startswith("State:")), "")
    except OSError:
        return False
    return state.split()[1:2] not in (["Z"], ["X"])
