"""Expected values of the terminal's tests: results of a real tmux for bytes and keys.

    python3 tmux_golden.py screens >../golden/tmux_screens.json   # needs tmux 3.3a (Debian 12); FUZZ=N for N random inputs
    python3 tmux_golden.py keys    >../golden/tmux_keys.json
    python3 tmux_golden.py widths  >../../src/agent/terminal/widths.txt   # needs glibc 2.36 (Debian 12)

Bytes are written as the characters of the same numbers.
"""

import ctypes
import json
import locale
import os
import random
import subprocess
import sys
import tempfile
import time

ROWS, COLS, HISTORY = 6, 20, 15

# Runs in the pane: writes the input, asks for the cursor, and keeps what it is told.
FEEDER = r"""
import os, re, select, sys, termios, time, tty
data, answers, ready = sys.argv[1:]
tty.setraw(0)
left = open(data, "rb").read() + b"\033[6n"
while left:
    left = left[os.write(1, left):]
got, until = b"", time.time() + 1.5
while time.time() < until and not re.search(rb"\033\[\d+;\d+R$", got):
    if select.select([0], [], [], 0.05)[0]:
        got += os.read(0, 4096)
open(answers, "wb").write(got)
os.rename(answers, ready)
time.sleep(1000)
"""

# Runs in the pane: sets a mode, and keeps every byte that is typed up to a NUL that nothing else here types.
READER = r"""
import os, sys, tty
modes, kept, ready = sys.argv[1:]
tty.setraw(0)
os.write(1, modes.encode("latin-1").decode("unicode_escape").encode("latin-1") + b"ready")
got = b""
while not got.endswith(b"\0END"):
    got += os.read(0, 4096)
open(kept, "wb").write(got[:-4])
os.rename(kept, ready)
"""

SCREENS = {
    "plain": b"hello",
    "newline only": b"a\nb\nc",
    "carriage return": b"hello\rJ",
    "both": b"one\r\ntwo\r\nthree",
    "trailing blanks": b"ab   \r\n   \r\n  c  ",
    "wrap": b"0123456789abcdefghijKLM",
    "exactly full line": b"0123456789abcdefghij",
    "full line then newline": b"0123456789abcdefghij\r\nx",
    "wrap and backspace": b"0123456789abcdefghijK\b\bX",
    "backspace at start": b"ab\r\n\bX",
    "progress bar": b"".join(b"\r[%-10s] %3d%%" % (b"#" * n, n * 10) for n in range(11)),
    "progress erase": b"\r\x1b[K 10%\r\x1b[K100% done",
    "scroll": b"\r\n".join(b"line %d" % n for n in range(12)),
    "scroll past history": b"\r\n".join(b"line %d" % n for n in range(60)),
    "history exactly full": b"\r\n".join(b"line %d" % n for n in range(ROWS + HISTORY)),
    "history one more": b"\r\n".join(b"line %d" % n for n in range(ROWS + HISTORY + 1)),
    "clear goes to history": b"one\r\ntwo\x1b[H\x1b[2Jthree",
    "clear from home": b"one\r\ntwo\x1b[H\x1b[Jthree",
    "clear of blanks": b"\x1b[2J\x1b[2Jx",
    "clear keeps blank lines": b"\r\n\r\nx\x1b[2Jy",
    "clear history": b"\r\n".join(b"line %d" % n for n in range(12)) + b"\x1b[3J",
    "clear 3 with second": b"\r\n".join(b"line %d" % n for n in range(12)) + b"\x1b[3;1J",
    "clear below": b"aaa\r\nbbb\r\nccc\x1b[2;2H\x1b[J",
    "clear above": b"aaa\r\nbbb\r\nccc\x1b[2;2H\x1b[1J",
    "erase line": b"abcdef\x1b[4D\x1b[K|\r\nabcdef\x1b[3D\x1b[1K|\r\nabc\x1b[2K|",
    "erase characters": b"abcdef\x1b[5D\x1b[2X",
    "insert characters": b"abcdef\x1b[5D\x1b[2@",
    "insert many": b"abcdefghij\x1b[8D\x1b[12@",
    "insert with colour": b"abcdefghijklmnopqrst\x1b[1;4H\x1b[41m\x1b[15@",
    "delete characters": b"abcdef\x1b[5D\x1b[2P",
    "delete many": b"abcdefghijklmnopqrst\x1b[1;4H\x1b[15P",
    "insert line": b"a\r\nb\r\nc\r\nd\x1b[2;1H\x1b[2L",
    "delete line": b"a\r\nb\r\nc\r\nd\x1b[2;1H\x1b[2M",
    "insert lines in region": b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[3;1H\x1b[L",
    "delete lines in region": b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[2;1H\x1b[5M",
    "insert lines below region": b"a\r\nb\r\nc\r\nd\r\ne\x1b[1;3r\x1b[4;1H\x1b[L",
    "delete lines below region": b"a\r\nb\r\nc\r\nd\r\ne\r\nf\x1b[1;3r\x1b[4;1H\x1b[2M",
    "region scroll": b"a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\r\nX\r\nY",
    "region scroll up": b"a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[S",
    "region scroll down": b"a\r\nb\r\nc\r\nd\x1b[2;4r\x1b[2T",
    "reverse index": b"a\r\nb\x1b[H\x1bMtop",
    "index": b"a\x1bDb\x1bEc",
    "origin mode": b"\x1b[2;4r\x1b[?6h\x1b[1;1Ha\x1b[9;3Hb\x1b[?6l\x1b[1;1Hc",
    "cursor moves": b"\x1b[3;5Hx\x1b[Ay\x1b[2Bz\x1b[3Cw\x1b[20Dv\x1b[Eu\x1b[2Ft\x1b[7Gs\x1b[2dr\x1b[9`q",
    "cursor beyond": b"\x1b[99;99Hx\x1b[99Ay",
    "pending wrap moves": b"0123456789abcdefghij\x1b[Cx\r\n0123456789abcdefghij\x1b[Dy",
    "pending wrap up": b"\r\n0123456789abcdefghij\x1b[Ax",
    "save restore": b"ab\x1b7\x1b[4;4Hx\x1b8c\x1b[s\r\n\x1b[ud",
    "save in margin": b"0123456789abcdefghij\x1b7\r\n\x1b8X",
    "tabs": b"a\tb\tc\td",
    "tab stops": b"\x1b[3g\x1b[1;5H\x1bH\r\tx\x1b[g\x1b[1;5H\x1b[g\r\ty",
    "back tab": b"\t\tx\x1b[2Zy\x1b[9Zz",
    "no wrap": b"\x1b[?7l0123456789abcdefghijKLM\x1b[?7hN",
    "no wrap wide": "\x1b[?7l0123456789abcdefghi漢x".encode(),
    "insert mode": b"abc\x1b[3D\x1b[4hXY\x1b[4lZ",
    "insert mode wide": "abc\x1b[3D\x1b[4h漢\x1b[4lZ".encode(),
    "repeat": b"ab\x1b[3b\x1b[2bc",
    "repeat to margin": b"a\x1b[99b",
    "repeat after newline": b"a\r\n\x1b[3b",
    "repeat after unknown": b"a\x1b[5y\x1b[2b",
    "repeat after utf8": "é\x1b[2b".encode(),
    "alignment": b"x\x1b#8",
    "reset": b"abc\x1b[2;4r\x1b[?7l\x1bcx",
    "line drawing": b"\x1b(0lqqk\x1b(Bx\x0eq\x0f\x1b)0\x0eq\x0f",
    "alternate": b"main\x1b[?1049halternate\r\nscreen\x1b[?1049lback",
    "alternate stays": b"main\r\nmore\x1b[?1049h\x1b[Halternate\r\nscreen",
    "alternate scroll": b"main\x1b[?1049h" + b"\r\n".join(b"line %d" % n for n in range(12)),
    "alternate scroll and back": b"main\x1b[?1049h" + b"\r\n".join(b"line %d" % n for n in range(12)) + b"\x1b[?1049l",
    "alternate 47": b"main\x1b[?47halt\x1b[?47lback",
    "alternate 1047": b"main\x1b[?1047halt\x1b[2J\x1b[?1047lback",
    "alternate twice": b"a\x1b[?1049hb\x1b[?1049hc\x1b[?1049ld\x1b[?1049le",
    "alternate off only": b"abc\x1b[?1049ld",
    "alternate clear": b"main\x1b[?1049hx\x1b[2Jy\x1b[?1049l",
    "wide": "漢字x\r\n0123456789abcdefghi漢".encode(),
    "wide overwritten": "ab漢字\x1b[1;4Hx".encode(),
    "wide overwritten at start": "漢字\x1b[1;1Hx".encode(),
    "wide overwritten in column 1": "漢字\x1b[1;2Hx".encode(),
    "wide over wide": "漢字漢\x1b[1;2H字".encode(),
    "wide over narrow": "abcd\x1b[1;2H字".encode(),
    "wide erased": "漢字漢\x1b[1;4H\x1b[X\x1b[1;3H\x1b[P".encode(),
    "utf8 over wide": "ab漢字\x1b[1;4Hé".encode(),
    "combining": "e\u0301a\u0301\u0302 \u0301x".encode(),
    "combining at start": "\u0301x".encode(),
    "combining many": ("a" + "\u0301" * 15 + "b").encode(),
    "combining on wide": "漢\u0301x".encode(),
    "joiner": "👩\u200d👩x".encode(),
    "emoji": "😀 ok ✓ → ─".encode(),
    "unprintable": "a\u0085b\u2028c\u00add".encode(),
    "invalid utf8": b"a\xffb\xe4\xe4c\xc3(d\xed\xa0\x80e\xf5f\x80g",
    "broken utf8 by escape": b"\xe4\x1b[C\xbd\xa0x",
    "c1 controls": b"a\x9bb\x84c",
    "control characters": b"a\x01\x02\x05\x06b\x7fc\x00d\x0be\x0cf\x07g",
    "unknown sequences": b"a\x1b[?2026hb\x1b[99yc\x1bQd\x1b%Ge\x1b[>1uf",
    "bad parameters": b"a\x1b[1:2Cb\x1b[99999999999Cc\x1b[;Cd\x1b[1;2;3Ce",
    "too many parameters": b"a\x1b[" + b"1;" * 30 + b"Cb\x1b[" + b"1" * 70 + b"Cc",
    "private in the middle": b"a\x1b[1?5Cb",
    "sequence broken off": b"a\x1b[12\x18b\x1b[3\x1b[2Cc",
    "control in sequence": b"a\x1b[2\r\nCb",
    "title": b"\x1b]0;title\x07a\x1b]2;title\x1b\\b\x1bktitle\x1b\\c\x1b_apc\x1b\\d\x1b^pm\x1b\\e\x1bXsos\x1b\\f",
    "device control": b"a\x1bPq#0;text\x1b\\b\x1bP$qm\x1b\\c\x1bP1:2\x1b\\d\x1bPtmux;\x1b\x1b[31m\x1b\\e",
    "hyperlink": b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "colours": b"\x1b[1;31;48;5;200mred\x1b[0m \x1b[48;2;1;2;3mx\x1b[m \x1b[38:2::1:2:3my\x1b[4:3mz",
    "coloured erase": b"\x1b[41m\x1b[2J\x1b[mx\r\n\x1b[42m\x1b[K\x1b[2Jy",
    "coloured lines": b"\x1b[44m\r\n\r\n\r\n\r\n\r\n\r\n\r\nx",
    "device attributes": b"\x1b[c\x1b[0c\x1b[>c\x1b[>q\x1b[1c\x1b[>1c",
    "status": b"ab\x1b[5n\x1b[6n\x1b[?6n\x1b[7n",
    "cursor report in margin": b"0123456789abcdefghij\x1b[6n",
    "window size": b"\x1b[18t\x1b[14t\x1b[22;0t\x1b[8;1t\x1b[18t",
    "colour queries": b"\x1b]10;?\x07\x1b]11;?\x1b\\\x1b]4;1;?\x07\x1b]52;c;?\x07",
    "mode queries": b"\x1b[?2026$p\x1b[?u\x1b[x\x1b[?1004h\x1b[?2004h\x1b[>4;2m",
}


def fuzz(seed):
    """Random sequences and texts, mostly ones that change the screen."""
    rng = random.Random(seed)
    number = lambda: rng.choice(["", "0", "1", "2", "3", "5", "9", "19", "20", "21", "40"])
    parts = []
    for _ in range(rng.randrange(5, 60)):
        kind = rng.randrange(12)
        if kind < 4:
            letters = "abcdefghijklmnopqrstuvwxyz   "
            parts.append("".join(rng.choice(letters) for _ in range(rng.randrange(1, 30))))
        elif kind == 4:
            parts.append("".join(rng.choice("漢字é─\u0301😀x ") for _ in range(rng.randrange(1, 8))))
        elif kind == 5:
            parts.append(rng.choice(["\r\n", "\r", "\n", "\b", "\t", "\b\b", "\r\n\r\n"]))
        elif kind == 6:
            parts.append(f"\x1b[{number()};{number()}{rng.choice('HHHHr')}")
        elif kind == 7:
            parts.append(rng.choice(["\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1bE", "\x1bH", "\x1b[m", "\x1b[41m", "\x1b[49m"]))
        elif kind == 8:
            mode = rng.choice([1, 3, 6, 7, 47, 1047, 1049, 1049])
            parts.append(f"\x1b[?{mode}{rng.choice('hl')}")
        elif kind == 9:
            parts.append(f"\x1b[4{rng.choice('hlll')}")
        else:
            parts.append(f"\x1b[{number()}{rng.choice('ABCDEFGJJKKLMPSTXZ@bd`g')}")
    return "".join(parts).encode()


KEYS = [
    # What models send.
    "ls -la\n", "C-c", "C-d", "C-z", "C-l", "C-C", "Enter", "enter", "ENTER", "Escape", "Tab", "Space", "BSpace", "Up",
    "Down", "Left", "Right", "Home", "End", "PageUp", "PgUp", "PPage", "PageDown", "PgDn", "NPage", "Insert", "IC",
    "Delete", "DC", "BTab", "F1", "F4", "F5", "F12", "F13", "C-c\n", "C-c C-c", "q", "y\n", "\n", "\r", ":wq\n", "i",
    "\x1b", "\x03", "\x1b:wq\n", "é", "漢字\n", "😀", "a\tb", "  ", "-la", "--", "$HOME\n", "it's \"q\"\n", "\\", "\\n",
    # Modifiers.
    "M-x", "M-X", "M-Enter", "M-Up", "M-é", "C-é", "S-é", "S-a", "S-Tab", "S-Up", "S-F5", "C-Up", "C-Left", "C-S-Right", "C-M-c",
    "M-C-c", "C-M-Up", "c-c", "m-x", "s-Up", "C-Space", "C-@", "C-[", "C-\\", "C-]", "C-^", "C-_", "C-?", "C-/", "C--",
    "C-2", "C-3", "C-6", "C-8", "C-1", "C-|", "C-~", "C-{", "C-\"", "C-!", "C-;", "C-Enter", "C-Tab", "C-Escape",
    "C-BSpace", "M-BSpace", "S-BSpace", "M-Escape", "M-Tab", "M-BTab", "C-BTab", "S-BTab", "C-Home", "S-End", "C-PageUp", "M-F1",
    "C-F1", "C-IC", "S-DC", "^c", "^C", "^[", "^?", "^ ", "^M", "^Up", "^", "^^", "^C-c", "^é", "C-", "M-", "C-C-c", "x-y", "a-b\n",
    "C-\n", "M- ", "C-a b", "M-ab",
    # Keypad, oddities, hexadecimal.
    "KP0", "KP9", "KP/", "KP*", "KP-", "KP+", "KP.", "KPEnter", "kpenter", "M-KP0", "C-KP0", "C-KP.", "C-KPEnter", "S-KP*", "None", "Any", "none",
    "User0", "User5", "User5x", "User1000", "user5", "WheelUp", "MouseDown1", "C-WheelUp", "WheelUpPane", "mousedrag10status", "0x41", "0x41 is hex\n", "0x0a", "0x1b", "0xe9", "0x80", "0x1F600",
    "0x110000", "0xd800", "0x", "0xg", "0X41", "0x 41", "0x-1", "0x+41", "0x0x41", "0x7f", "0x100000041", "0xffffffff41",
    # The separator of tmux's commands.
    ";", "ls;", "ls\\;", "ls;\n", "a;b", ";;", "\\;", "ls \\\\;", "C-c;",
]

MODES = {"plain": "", "application": "\\x1b[?1h\\x1b=", "extended": "\\x1b[>4;2m"}


class Tmux:
    def __init__(self):
        self.dir = tempfile.mkdtemp()
        self.socket = os.path.join(self.dir, "tmux")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "first", "-x", "20", "-y", "5", "sleep 10000")
        self.tmux("set", "-g", "history-limit", str(HISTORY))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket, *args], check=True, capture_output=True).stdout

    def path(self, name, data=None):
        path = os.path.join(self.dir, name)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
        return path

    def wait(self, name):
        path = self.path(name)
        for _ in range(600):
            if os.path.exists(path):
                with open(path, "rb") as file:
                    return file.read()
            time.sleep(0.02)
        raise TimeoutError(name)

    def close(self):
        self.tmux("kill-server")


def screens():
    tmux = Tmux()
    feeder = tmux.path("feeder.py", FEEDER.encode())
    inputs = {**SCREENS, **{f"fuzz {seed}": fuzz(seed) for seed in range(int(os.environ.get("FUZZ", "150")))}}
    cases = []
    for number, (name, data) in enumerate(inputs.items()):
        path = tmux.path(f"in{number}", data)
        session = f"s{number}"
        command = f"exec python3 {feeder} {path} {path}.got {path}.ready"
        tmux.tmux("new-session", "-d", "-s", session, "-x", str(COLS), "-y", str(ROWS), command)
        answers = tmux.wait(f"in{number}.ready")
        screen = tmux.tmux("capture-pane", "-p", "-t", session)
        full = tmux.tmux("capture-pane", "-p", "-S", "-", "-t", session)
        tmux.tmux("kill-session", "-t", session)
        cases.append(
            {
                "name": name,
                "input": data.decode("latin-1"),
                "screen": screen.decode(),
                "full": full.decode(),
                "answers": answers.decode("latin-1"),
            }
        )
    version = tmux.tmux("-V").decode().strip()
    tmux.close()
    return {"tmux": version, "rows": ROWS, "cols": COLS, "history": HISTORY, "cases": cases}


def keys():
    tmux = Tmux()
    reader = tmux.path("reader.py", READER.encode())
    cases = []
    for mode, sequence in MODES.items():
        for number, key in enumerate(KEYS):
            path = tmux.path(f"{mode}{number}")
            session = f"{mode}{number}"
            tmux.tmux("new-session", "-d", "-s", session, "-x", "40", "-y", "5",
                      f"exec python3 {reader} '{sequence}' {path}.got {path}.ready")
            while "ready" not in tmux.tmux("capture-pane", "-p", "-t", session).decode():
                time.sleep(0.01)
            # As Harbor calls it.
            subprocess.run(["tmux", "-S", tmux.socket, "send-keys", "-t", session, "--", key], capture_output=True)
            tmux.tmux("send-keys", "-t", session, "-H", "0", "45", "4e", "44")
            cases.append({"mode": mode, "key": key, "bytes": tmux.wait(f"{mode}{number}.ready").decode("latin-1")})
    version = tmux.tmux("-V").decode().strip()
    tmux.close()
    return {"tmux": version, "cases": cases}


def widths():
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    libc = ctypes.CDLL(None)
    runs = []
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        width = {-1: "-", 0: "0", 1: "1", 2: "2"}[libc.wcwidth(code)]
        if runs and runs[-1][2] == width and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code, width])
    return "\n".join(f"{first:x} {last:x} {width}" for first, last, width in runs if width != "1")


if __name__ == "__main__":
    wanted = sys.argv[1]
    if wanted == "widths":
        print(widths())
    else:
        made = {"screens": screens, "keys": keys}[wanted]()
        cases = made.pop("cases")
        # One case a line, so that a change shows as one line.
        head = json.dumps(made)[:-1]
        print(head + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}")
