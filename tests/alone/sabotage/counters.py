"""Exhausts resources that the kernel limits per user (watches, pipe buffers, signals). The root of all containers is one user."""

import ctypes
import fcntl
import os
import signal
import time

libc = ctypes.CDLL(None, use_errno=True)
SIZE = 1 << 20


def take(name, one, most=4000):
    count = 0
    try:
        while count < most:
            one()
            count += 1
    except OSError as error:
        print(f"{count} {name}: {error}", flush=True)


def watches():
    if libc.inotify_init() < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def pipe():
    fcntl.fcntl(os.pipe()[0], fcntl.F_SETPIPE_SZ, SIZE)


signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
for _ in range(6):
    if os.fork() == 0:
        take("watches", watches)
        take("pipes", pipe)
        take("pipes of the usual size", os.pipe)
        take("signals", lambda: libc.sigqueue(os.getpid(), 40, None), 100_000)
        time.sleep(60)
        os._exit(0)
time.sleep(60)
