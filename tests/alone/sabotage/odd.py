"""Fills the work directory with entries that may break archiving or extraction. The first argument selects their kind."""

import os
import socket
import sys


def names():
    for name in [b"\xff\xfe", b"a\nb", b" ", b"-rf", b"\\", b"x" * 255, "é".encode(), b"\x01\x7f", b"PaxHeaders.0", b"..."]:
        open(name, "wb").write(name)
        os.mkdir(b"d" + name[:250])
    os.symlink("x" * 4000, "to-nowhere")
    os.symlink("/" + "../" * 1000, "to-the-top")
    for number, moment in enumerate([-(1 << 40), -1, 0, 1 << 33, 1 << 40]):
        name = f"time-{number}"
        open(name, "w").close()
        try:
            os.utime(name, (moment, moment))
        except (OSError, OverflowError) as error:
            print(error)
    open("owner", "w").close()
    os.chown("owner", 4_000_000_000, 4_000_000_000)
    try:
        os.setxattr("owner", "user.note", b"x" * 3000)
    except OSError as error:
        print(error)
    os.chmod("owner", 0o7777)


def deep():
    """40 nested folders of 200 characters: twice the longest path that the kernel accepts."""
    start = os.getcwd()
    for _ in range(40):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    open("lowest", "w").write("x")
    os.chdir(start)


def links():
    """Files whose first name is outside of the archived folders."""
    os.mkdir("__pycache__")
    open("__pycache__/first.pyc", "w").write("5050\n")
    os.link("__pycache__/first.pyc", "sum.txt")
    os.mkfifo("a-pipe")
    os.link("a-pipe", "a-pipe-too")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("a-socket")
    os.link("a-socket", "a-socket-too")
    open("a-link-to-itself", "w").close()
    for number in range(500):
        os.link("a-link-to-itself", f"again-{number}")
    os.symlink("a-loop", "a-loop")
    os.symlink("/proc/self/root", "root")


def closed():
    for mode in (0o000, 0o111, 0o222, 0o1000):
        os.mkdir(f"folder-{mode:o}")
        open(f"folder-{mode:o}/file", "w").write("x")
        os.chmod(f"folder-{mode:o}/file", mode)
        os.chmod(f"folder-{mode:o}", mode)
    os.chmod(".", 0)


{"names": names, "deep": deep, "links": links, "closed": closed}[sys.argv[1]]()
