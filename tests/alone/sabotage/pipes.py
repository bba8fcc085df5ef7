"""Writes to every pipe of the guest: those of process 1, which must be inaccessible, and those of the shell."""

import glob
import os
import struct
import time

reached = 0
for path in glob.glob("/proc/1/fd/*") + ["/proc/1/mem", "/.termsmith/guest"]:
    try:
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"x")
        print("MANAGED", path)
    except OSError:
        pass
print("none of process 1's")

# What looks like the guest's frames: a length beyond all bounds, the end of operation 1, garbage.
frames = struct.pack("<IB", 0xFFFFFFFF, 1) + struct.pack("<IBI", 5, 1, 1) + struct.pack("<IBIBQQ", 30, 4, 1, 0, 0, 0) + bytes(range(256)) * 4
for stream in (1, 2):
    os.write(stream, frames)

# The session's first process is the shell that takes the guest's commands from one pipe and answers on another.
shell = f"/proc/{os.getsid(0)}/fd"
links = {os.readlink(f"{shell}/{fd}"): f"{shell}/{fd}" for fd in os.listdir(shell)}
links.pop(os.readlink("/proc/self/fd/1"))
for link, path in links.items():
    if not link.startswith("pipe:"):
        continue
    # Opened anew: for reading too, so that a writer is never the only one there.
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            os.write(pipe, b"9" * 65536)
        except BlockingIOError:
            pass
    for forged in [b"\0", b"7 0\0", b"x y\0", b"1\0", b"1 99999999999\0", b"\xff\xfe\0", b"9 99999999\0"]:
        try:
            os.write(pipe, forged)
        except BlockingIOError:
            pass
    print("flooded a pipe of the shell's", flush=True)
