"""Attempts to leave a container or to reach its host, in groups selected by name. Each prints its result:

    refused NAME: why
    MANAGED NAME: what it obtained

All of these attacks are well known and must fail. The errno may differ between kernels.
"""

import ctypes
import glob
import os
import platform
import resource
import signal
import socket
import stat
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
# A name that the test looks for on its host, and a folder of the host's.
MARK, HOST_DIR = open("/solution/host").read().split()
ARM = platform.machine() == "aarch64"
NUMBERS = {"keyctl": (250, 219), "pivot_root": (155, 41), "bpf": (321, 280), "perf_event_open": (298, 241)}
NUMBERS.update(kexec_load=(246, 104), finit_module=(313, 273), userfaultfd=(323, 282))


def call(name, *args):
    """A function of libc, or a system call without a libc function."""
    if name in NUMBERS:
        result = libc.syscall(NUMBERS[name][ARM], *args)
    else:
        result = getattr(libc, name)(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path, "rb") as file:
        return file.read(64)


def mount(source, kind, flags=0, data=None, target=b"/mnt"):
    call("mount", source, target, kind, flags, data)


def node(kind, number):
    """Creates and opens a device node."""
    os.mknod("/srv/node", kind | 0o600, number)
    return read("/srv/node")


def by_handle():
    """Opens the host's root folder (inode 2 of an ext4) by a file handle, as in CVE-2014-9357."""
    handle = struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0)
    place = os.open("/etc/hosts", os.O_RDONLY)
    return call("open_by_handle_at", place, ctypes.create_string_buffer(handle), os.O_RDONLY)


def steal(pid):
    """Reads a page of another process's memory."""
    into = ctypes.create_string_buffer(64)
    local = (ctypes.c_ulong * 2)(ctypes.addressof(into), 64)
    remote = (ctypes.c_ulong * 2)(0x400000, 64)
    return call("process_vm_readv", pid, local, 1, remote, 1, 0)


def connect(address, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as wire:
        wire.settimeout(1)
        wire.connect(address)


def links():
    """Creates a network interface by RTM_NEWLINK."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as wire:
        kind = struct.pack("HH", 9, 1) + b"dummy\0\0\0"
        info = struct.pack("HH", 4 + len(kind) - 3, 18) + kind
        message = struct.pack("BxHiII", 0, 0, 0, 0, 0) + info
        wire.send(struct.pack("IHHII", 16 + len(message), 16, 0x605, 1, 0) + message)
        code = struct.unpack_from("i", wire.recv(4096), 16)[0]
    if code:
        raise OSError(-code, os.strerror(-code))


def clock():
    call("clock_settime", 0, (ctypes.c_long * 2)(1, 0))


def each(paths, action):
    """Tries every item. Any success is a success; no items are a failure."""
    last = FileNotFoundError("there is none")
    for path in paths:
        try:
            return path, action(path)
        except OSError as error:
            last = error
    raise last


NAMESPACES = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "network": 0x40000000, "cgroup": 0x2000000}
GROUPS = {
    "mounts": {
        "mount tmpfs": lambda: mount(b"none", b"tmpfs"),
        "mount proc": lambda: mount(b"proc", b"proc"),
        "mount cgroup": lambda: mount(b"cgroup", b"cgroup", 0, b"memory"),
        "bind the root": lambda: mount(b"/", None, 4096),
        "overlay over /tests": lambda: mount(
            b"none", b"overlay", 0, b"lowerdir=/app,upperdir=/srv,workdir=/mnt", b"/tests"
        ),
        "make /proc/sys writable": lambda: mount(None, None, 32 | 4096, None, b"/proc/sys"),
        "unmount /proc/sys": lambda: call("umount2", b"/proc/sys", 2),
        "unmount the guest": lambda: call("umount2", b"/.termsmith/guest", 2),
        "pivot the root": lambda: call("pivot_root", b"/app", b"/app"),
        "chroot": lambda: os.chroot("/app"),
        "block device of the host": lambda: each(
            [line.split()[:2] for line in open("/proc/partitions").readlines()[2:]],
            lambda numbers: node(stat.S_IFBLK, os.makedev(*map(int, numbers))),
        ),
        "memory device": lambda: node(stat.S_IFCHR, os.makedev(1, 1)),
        "a device that is there": lambda: each(
            [*glob.glob("/dev/[shv]d*"), *glob.glob("/dev/nvme*"), "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm"], read
        ),
        "file handle of the host's root": by_handle,
    },
    "namespaces": {
        **{f"new {name} namespace": lambda flag=flag: call("unshare", flag) for name, flag in NAMESPACES.items()},
        "enter the guest's namespaces": lambda: each(
            glob.glob("/proc/1/ns/*"), lambda path: call("setns", os.open(path, os.O_RDONLY), 0)
        ),
        "root of process 1": lambda: os.listdir("/proc/1/root"),
        "folder of process 1": lambda: os.listdir("/proc/1/cwd/"),
        "trace process 1": lambda: call("ptrace", 16, 1, 0, 0),
        "read process 1": lambda: steal(1),
        "memory of process 1": lambda: read("/proc/1/mem"),
        "descriptors of process 1": lambda: each(
            glob.glob("/proc/1/fd/*"), lambda path: os.write(os.open(path, os.O_WRONLY), b"\0" * 64)
        ),
        "the host's marked folder": lambda: each(
            [f"/proc/{pid}/root{HOST_DIR}" for pid in range(1, 300) if pid != os.getpid()], os.listdir
        ),
    },
    "kernel": {
        "core pattern": lambda: write("/proc/sys/kernel/core_pattern", f"|/bin/touch /{MARK}"),
        "magic request": lambda: write("/proc/sysrq-trigger", "h"),
        "caches": lambda: write("/proc/sys/vm/drop_caches", "3"),
        "event helper": lambda: write("/sys/kernel/uevent_helper", f"/{MARK}"),
        "release agent": lambda: each(
            glob.glob("/sys/fs/cgroup/*/release_agent"), lambda path: write(path, f"/{MARK}")
        ),
        "a control group of its own": lambda: each(
            [os.path.dirname(path) for path in glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True)],
            lambda path: os.mkdir(f"{path}/{MARK}"),
        ),
        "limits of its control group": lambda: each(
            [*glob.glob("/sys/fs/cgroup/*/pids.max"), *glob.glob("/sys/fs/cgroup/pids.max")], lambda path: write(path, "max")
        ),
        "load a module": lambda: call("finit_module", os.open("/bin/true", os.O_RDONLY), b"", 0),
        "load a kernel": lambda: call("kexec_load", 0, 0, 0, 0),
        "reboot": lambda: call("reboot", 0x01234567),
        "clock": clock,
        "host name": lambda: socket.sethostname(MARK),
        "swap": lambda: call("swapon", b"/etc/hosts", 0),
        "kernel log": lambda: call("klogctl", 3, ctypes.create_string_buffer(64), 64),
        "keyring": lambda: call("keyctl", 0, -3, 1),
        "program in the kernel": lambda: call("bpf", 0, ctypes.create_string_buffer(128), 128),
        "performance counters": lambda: call("perf_event_open", ctypes.create_string_buffer(128), 0, -1, -1, 0),
        "more than its file size": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)),
        "more than its open files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)),
        "spared when memory is short": lambda: write("/proc/self/oom_score_adj", "-1000"),
        "higher priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
        "real-time priority": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    },
    "network": {
        "engine's socket": lambda: each(
            [f"{run}/{name}" for run in ("/var/run", "/run") for name in ("docker.sock", "podman/podman.sock",
             "containerd/containerd.sock", "docker/containerd/containerd.sock")],
            lambda path: connect(path, socket.AF_UNIX),
        ),
        "abstract sockets": lambda: each(
            [f"\0{line.split('@')[1].strip()}" for line in open("/proc/net/unix") if "@" in line]
            + ["\0/containerd-shim/moby/shim.sock", "\0/tmp/dbus"],
            lambda path: connect(path, socket.AF_UNIX),
        ),
        "engine over the network": lambda: each(
            [(host, port) for host in ("127.0.0.1", "172.17.0.1", "10.0.2.2") for port in (2375, 2376, 80, 22)], connect
        ),
        "metadata service": lambda: connect(("169.254.169.254", 80)),
        "the outside": lambda: connect(("1.1.1.1", 53)),
        "raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300),
        "raw sockets": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "a network interface": links,
    },
}

for number in (signal.SIGXFSZ, signal.SIGSYS):
    signal.signal(number, signal.SIG_IGN)
group = GROUPS[sys.argv[1]]
refused = 0
for name, attempt in group.items():
    try:
        print(f"MANAGED {name}: {attempt()!r}", flush=True)
    except (OSError, ValueError) as error:
        refused += 1
        print(f"refused {name}: {error}", flush=True)
print(f"{refused} of {len(group)} attempts refused")
