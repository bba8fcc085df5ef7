"""Ways to end process 1 of a container from inside, by exhausting kernel resources. The first argument selects one."""

import mmap
import os
import resource
import signal
import socket
import sys
import time


def expendable():
    """Makes process 1 the first to be killed when memory is short."""
    try:
        with open("/proc/1/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError as error:
        print(error, flush=True)


def memory():
    """Exceeds the memory limit with many small processes, so that process 1 is the largest."""
    expendable()
    for _ in range(150):
        try:
            if os.fork() == 0:
                held = []
                while True:
                    held.append(bytearray(64 << 10))
                    time.sleep(0.001)
        except OSError:
            break
    held = []
    while True:
        held.append(bytearray(1 << 20))


def edge():
    """Uses memory up to slightly below the limit, and reads files through the rest for ever."""
    held = []
    for _ in range(10_000):
        limit = int(open(limit_file()[0]).read())
        used = int(open(limit_file()[1]).read())
        if used > limit - (6 << 20):
            break
        held.append(bytearray(os.urandom(1 << 10) * 1024))
    with open("/var/tmp/large", "wb") as file:
        file.write(os.urandom(1 << 20) * 60)
    for _ in range(8):
        if os.fork() == 0:
            break
    while True:
        with open("/var/tmp/large", "rb") as file:
            while file.read(1 << 16):
                pass


def limit_file():
    one = "/sys/fs/cgroup/memory/memory."
    if os.path.exists(one + "limit_in_bytes"):
        return one + "limit_in_bytes", one + "usage_in_bytes"
    return "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"


def limits():
    """Sets the limits of process 1 to no files, memory and processes, then gives it work."""
    for name in ("NOFILE", "AS", "NPROC", "FSIZE", "STACK", "CPU"):
        try:
            resource.prlimit(1, getattr(resource, f"RLIMIT_{name}"), (1, 1))
            print("limited", name, flush=True)
        except OSError as error:
            print("refused", name, error, flush=True)
    for _ in range(200):
        os.write(1, b"x" * 65536)


def processes():
    """Fills the process limit with sleeping processes, and kills the shell, which the guest then has to replace."""
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(1000)
        except OSError:
            break
    os.kill(os.getsid(0), signal.SIGKILL)
    time.sleep(1000)


def shell():
    """Kills every shell that the guest starts."""
    if os.fork() == 0:
        os.setsid()
        own = os.getpid()
        while True:
            for name in os.listdir("/proc"):
                if name.isdigit() and int(name) not in (1, own):
                    try:
                        os.kill(int(name), signal.SIGKILL)
                    except OSError:
                        pass
    time.sleep(2)


def served(answers):
    """Answers a number of requests, then ends its container."""
    with socket.create_server(("127.0.0.1", 8470)) as server:
        for _ in range(answers):
            client, _ = server.accept()
            client.recv(4096)
            client.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nready\n")
            client.close()
        server.accept()
        memory()


{
    "memory": memory,
    "edge": edge,
    "limits": limits,
    "processes": processes,
    "shell": shell,
    "probed": lambda: served(0),
    "probed-again": lambda: served(2),
}[sys.argv[1]]()
