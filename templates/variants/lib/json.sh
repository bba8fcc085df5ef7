# rewrite_json LAYOUT: writes each changed .json file anew, equal as JSON. LAYOUT is indented, compact, reversed or newline.
# Files are left alone that are no JSON, have a key twice, lie in a git work tree, or whose checksum stands in another changed
# file.
rewrite_json() {
  command -v python3 > /dev/null || exit 3
  python3 -I - "$1" "$CHANGED" <<'PY'
import hashlib
import json
import os
import re
import sys

layout, listed = sys.argv[1:]
paths = [path for path in open(listed).read().split("\n") if os.path.isfile(path) and not os.path.islink(path)]
contents = {path: open(path, "rb").read() for path in paths if os.path.getsize(path) < 1 << 20}


def in_repository(path):
    folder = os.path.dirname(path)
    return os.path.exists(folder + "/.git") or folder != "/" and in_repository(folder)


def sums(content):
    return [hashlib.new(name, content).hexdigest().encode() for name in ("md5", "sha1", "sha256", "sha512")]


def once(pairs):
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands here twice")
    return dict(reversed(pairs) if layout == "reversed" else pairs)


# Numbers keep their spelling: 1.50 is another text than 1.5, and an instruction may have asked for it.
def spelt(number):
    return "\x00" + number + "\x00"


def dump(text):
    value = json.loads(text, object_pairs_hook=once, parse_float=spelt, parse_int=spelt)
    if layout == "indented":
        out = json.dumps(value, ensure_ascii=False, indent=3)
    else:
        out = json.dumps(value, ensure_ascii=False, separators=(",", ":") if layout == "compact" else (", ", ": "))
    out = re.sub(r'"\\u0000([^"\\]*)\\u0000"', r"\1", out)
    # An indented file stays one that a person can read.
    if layout == "reversed" and "\n" in text.strip():
        out = json.dumps(value, ensure_ascii=False, indent=2)
        out = re.sub(r'"\\u0000([^"\\]*)\\u0000"', r"\1", out)
    if layout == "newline":
        return text.rstrip("\n") if text.endswith("\n") else text + "\n"
    return out + ("\n" if text.endswith("\n") else "")


changed = 0
for path, content in contents.items():
    others = [other for name, other in contents.items() if name != path]
    if not path.endswith(".json") or in_repository(path):
        continue
    if any(digest in other for digest in sums(content) for other in others):
        continue
    try:
        written = dump(content.decode())
    except ValueError:
        continue
    if written.encode() != content:
        with open(path, "r+b") as file:
            file.write(written.encode())
            file.truncate()
        changed += 1
sys.exit(0 if changed else 3)
PY
}
