# differs: the tool is written in Python, the old scripts are links to it (it then takes the NAME from how it was called), the settings have comments, lines of nothing but blanks count as blank
cat > solve.sh <<'S'
#!/bin/bash
set -euo pipefail
umask 022
install -d -m 0755 /app/bin /app/etc/logturn.d
install -m 0755 /solution/rotate /app/bin/rotate
write() {
  printf '# Log rotation of %s\n\ndir=%s\nfile=%s\nmethod=%s\nmode=%s\n\nkeep=%s\ncompress_from=%s\nmin_bytes=%s\n' "$@" > "/app/etc/logturn.d/$1.conf"
  chmod 0640 "/app/etc/logturn.d/$1.conf"
  ln -sfn ../bin/rotate "/app/rotate/rotate-$1.sh"
  sed -i "/^[^#]/s,/app/rotate/rotate-$1\.sh,/app/bin/rotate $1," /app/etc/cron.d/log-rotation
}
write vpn openvpn status.log move 0640 7 3 2900
write proxy squid cache.log move 0644 3 2 2385
write backup borg backup.log move 0600 4 2 5120
S
cat > rotate <<'P'
#!/usr/bin/python3 -B
"""rotate [-c FOLDER] NAME...: rotates logs by settings files."""
import os
import re
import shutil
import stat
import subprocess
import sys

RULES = {
    "dir": r"(?!/)(?!(.*/)?\.\.(/|\Z)).+",
    "file": r"(?!\.{1,2}\Z)[^/]+",
    "keep": r"0*[1-9][0-9]*",
    "compress_from": r"[0-9]+",
    "min_bytes": r"[0-9]+",
    "mode": r"[0-7]{4}",
    "method": r"move|copy",
}


class Failure(Exception):
    pass


def settings(path):
    try:
        with open(path, newline="\n", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError as error:
        raise Failure(f"cannot read the settings: {error}")
    found = {}
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        key, sign, value = line.partition("=")
        if not sign or key not in RULES:
            raise Failure(f"bad line {line!a}")
        if key in found:
            raise Failure(f"{key} more than once")
        if not re.fullmatch(RULES[key], value, re.S):
            raise Failure(f"bad {key} {value!a}")
        found[key] = value
    for key in RULES:
        if key not in found:
            raise Failure(f"no {key}")
    return found


def rotate(folder, name):
    if not re.fullmatch("[a-z0-9-]+", name):
        raise Failure("bad name")
    found = settings(f"{folder}/{name}.conf")
    keep, first = int(found["keep"]), int(found["compress_from"])
    top = (os.environ.get("LOG_ROOT") or "/var/log") + "/" + found["dir"]
    log = f"{top}/{found['file']}"
    if not os.path.isdir(top):
        raise Failure(f"no directory {top}")
    if not os.path.isfile(log):
        return f"no log {log}"
    size = os.path.getsize(log)
    if size < int(found["min_bytes"]):
        return f"skipped, {size} bytes"

    def compress(number):
        if 0 < first <= number:
            subprocess.run(["gzip", "-nf", "--", f"{log}.{number}"], check=True)

    for path in (f"{log}.{keep}", f"{log}.{keep}.gz"):
        if os.path.lexists(path):
            os.remove(path)
    for number in range(keep - 1, 0, -1):
        if os.path.isfile(f"{log}.{number}.gz"):
            os.rename(f"{log}.{number}.gz", f"{log}.{number + 1}.gz")
        elif os.path.isfile(f"{log}.{number}"):
            os.rename(f"{log}.{number}", f"{log}.{number + 1}")
            compress(number + 1)
    mode = int(found["mode"], 8)
    if found["method"] == "copy":
        if os.path.lexists(f"{log}.1"):
            os.remove(f"{log}.1")
        shutil.copyfile(log, f"{log}.1")
        before = os.stat(log)
        os.chown(f"{log}.1", before.st_uid, before.st_gid)
        os.chmod(f"{log}.1", stat.S_IMODE(before.st_mode))
        os.utime(f"{log}.1", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.truncate(log, 0)
    else:
        os.rename(log, f"{log}.1")
        os.close(os.open(log, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.chmod(log, mode)
    compress(1)
    return f"rotated {size} bytes"


def main(called, words):
    old = re.fullmatch(r"rotate-(.*)\.sh", os.path.basename(called))
    if old:
        words = [old[1]]
    folder = "/app/etc/logturn.d"
    if words[:1] == ["-c"]:
        folder, words = (words[1] if len(words) > 1 else ""), words[2:]
    if not words:
        print("usage: rotate [-c FOLDER] NAME...", file=sys.stderr)
        return 2
    status = 0
    for name in words:
        try:
            print(f"{name}: {rotate(folder, name)}", flush=True)
        except (Failure, OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            status = 1
    return status


sys.stdout.reconfigure(errors="surrogateescape")
sys.exit(main(sys.argv[0], sys.argv[1:]))
P
