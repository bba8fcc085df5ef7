"""Time limits that a busy machine does not shorten.

While more threads want to run than there are processors, a second counts as a part of one. E.g. with 20 threads of others on 2 processors a program
with a limit of 10 seconds is ended after 50. `beside` imports this module; `subject.probe` puts its text in front of a probe's own.
"""

import os
import select
import signal
import sys
import time

# A limit is never more than this many times as long: the load may come from the program itself, or the program may only sleep.
MOST = 5
# Seconds between two looks at a program. A longer pause between two looks is a pause of the container, and is not counted.
LOOK, PAUSE = 0.05, 1
# A line on standard error. It tells the harness that a busy machine may be the cause.
MET_LIMIT = "a program met its time limit"
# As `timeout` reports it.
TIMED_OUT = 124
# More than 1 where the tests run again because the machine had no time for the programs.
FACTOR = float(os.environ.get("TIME_FACTOR") or 1)


class Limit:
    """Seconds that a program has. With `whole` it also ends with the limit for all programs together."""

    def __init__(self, seconds, whole=None):
        self.left = seconds if whole is None else min(seconds, whole.left)
        self.had, self.whole, self._looked = 0.0, whole, time.monotonic()

    def met(self):
        """Whether the time is over. To be asked every LOOK seconds while the program runs."""
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
    """How many threads share a processor of the machine. Those of this container count as one: a program must not gain time by them."""
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
    """How many threads of this container want to run."""
    found = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/stat", "rb") as file:
                    # The name before it can hold any byte, and ends at the last parenthesis.
                    found += file.read().rpartition(b")")[2].split()[0] == b"R"
        except (OSError, IndexError):
            # It has ended meanwhile.
            continue
    return found


def tell():
    """Tells the harness that a program met its limit."""
    print(MET_LIMIT, file=sys.stderr, flush=True)


def wait_within(limit, child):
    """The status of a child process, which is killed and gets TIMED_OUT if it meets its limit."""
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
    """Like subprocess.run with captured output; the status is TIMED_OUT if the program met its limit."""
    import subprocess

    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, **options) as process:
        while True:
            try:
                stdout, stderr = process.communicate(input, timeout=LOOK)
                return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)
            except subprocess.TimeoutExpired:
                # A second call takes no input: it goes on with the first one's.
                input = None
            if limit.met():
                process.kill()
                tell()
                return subprocess.CompletedProcess(argv, TIMED_OUT, b"", b"timed out")
