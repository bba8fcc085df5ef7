"""Time limits that a busy machine does not shorten.

While more threads want to run than there are processors, a second counts only in part. E.g. with 20
threads of others on 2 processors, a program with a limit of 10 seconds is ended after 50. `beside`
imports this module, and `subject.probe` puts its text in front of a probe's own.
"""

import os
import select
import signal
import sys
import time

# The most that a limit grows, as a factor. The load may come from the program itself, or the
# program may only sleep.
MOST = 5
# Seconds between two looks at a program. More than PAUSE seconds in between mean that the container
# was paused. They are not counted.
LOOK, PAUSE = 0.05, 1
# A line on standard error. It tells the harness that a busy machine may be the reason for a
# failure.
MET_LIMIT = "a program met its time limit"
# Exit status, as in timeout(1).
TIMED_OUT = 124
# Factor of all limits. It is more than 1 if the tests run again because the machine was too busy.
FACTOR = float(os.environ.get("TIME_FACTOR") or 1)


class Limit:
    """The time limit of a program. With `whole`, a limit for all programs together, it ends with
    that one too.
    """

    def __init__(self, seconds, whole=None):
        self.left = seconds if whole is None else min(seconds, whole.left)
        self.had, self.whole, self._looked = 0.0, whole, time.monotonic()

    def met(self):
        """Whether the time is over. Call it every LOOK seconds while the program runs."""
        now = time.monotonic()
        had = min(now - self._looked, PAUSE) / (_slowness() * FACTOR)
        self._looked = now
        self.spend(had)
        return self.left <= 0

    def spend(self, seconds):
        self.had += seconds
        self.left -= seconds
        if self.whole is not None:
            self.whole.spend(seconds)


def _slowness():
    """How many threads share a processor of the machine. Threads of this container count as one, so
    that no program gains time by them.
    """
    processors = os.cpu_count() or 1
    try:
        with open("/proc/loadavg") as file:
            running = int(file.read().split()[3].split("/")[0])
        if running > processors:
            running = max(0, running - _running_here()) + 1
    except (OSError, ValueError, IndexError):
        return 1
    return min(MOST, max(1, running / processors))


def _running_here():
    """The number of runnable threads of this container."""
    found = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/stat", "rb") as file:
                    # The name before the state may contain any byte. It ends at the last
                    # parenthesis.
                    found += file.read().rpartition(b")")[2].split()[0] == b"R"
        except (OSError, IndexError):
            # It has ended meanwhile.
            continue
    return found


def tell():
    """Tells the harness that a program met its limit."""
    print(MET_LIMIT, file=sys.stderr, flush=True)


def wait_within(limit, child):
    """Waits for a child process, and returns its status. At the limit it is killed, and the status
    is TIMED_OUT.
    """
    watch = os.pidfd_open(child)
    try:
        while not select.select([watch], [], [], LOOK)[0]:
            if limit.met():
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                tell()
                return TIMED_OUT
    finally:
        os.close(watch)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_within(limit, argv, input=b"", **options):
    """Like subprocess.run with captured output. The status is TIMED_OUT if the program met its
    limit.
    """
    import subprocess

    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, **options) as process:
        while True:
            try:
                stdout, stderr = process.communicate(input, timeout=LOOK)
                return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)
            except subprocess.TimeoutExpired:
                # A second call must not pass input: it continues with the first call's.
                input = None
            if limit.met():
                process.kill()
                tell()
                return subprocess.CompletedProcess(argv, TIMED_OUT, b"", b"timed out")
