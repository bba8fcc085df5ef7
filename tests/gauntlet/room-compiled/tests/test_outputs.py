# termsmith-canary d92777f6-58b4-495c-b0a9-af1a42dbdd87
"""Builds the program anew where the solver worked, and compares it with a small model on random spans."""

import functools
import random

from subject import path, pristine, read_bytes, read_text, run

PROGRAM = "/app/bin/spans"
LARGEST = 10**12
# Seconds; it takes milliseconds for what is asked of it here.
PATIENCE = 5
RNG = random.SystemRandom()
HUNG = []


def make(*targets, version=None):
    """Runs make, with another version in its file if one is given; what went wrong, or nothing."""
    files = {} if version is None else {"/app/VERSION": version + "\n"}
    result = run(["make", "-C", "/app", *targets], timeout=2 * PATIENCE, files=files)
    return result.code and f"make {' '.join(targets)} ends with {result.code}: {result.stderr[-300:]}"


@functools.cache
def build():
    """Builds the program from nothing, once for all checks: what went wrong, and whether it was gone in between."""
    fault = make("clean")
    gone = run(["test", "-e", PROGRAM]).code == 1
    return fault or make(), gone


def built():
    """The program is there, built from nothing."""
    fault, _ = build()
    assert not fault, fault


def spans(text, *options):
    """What the program says; once it has hung it is not asked again, so that the verifier comes to an end."""
    built()
    assert not HUNG, f"the program hung with {HUNG}"
    result = run([PROGRAM, *options], stdin=text, cwd="/tmp", timeout=PATIENCE)
    if result.code == 124:
        HUNG.extend([*options, text[:80]])
    return result


def joined(rows, gap=0):
    """The spans of `rows` by name and start, joined."""
    found = []
    for name, start, end in sorted(rows, key=lambda row: (row[0].encode(), row[1])):
        if found and found[-1][0] == name and start - found[-1][2] <= gap:
            found[-1][2] = max(found[-1][2], end)
        else:
            found.append([name, start, end])
    return found


def totals(rows, gap=0):
    sums = {}
    for name, start, end in joined(rows, gap):
        sums[name] = sums.get(name, 0) + end - start
    return list(sums.items())


def text_of(rows):
    return "".join(" ".join(str(part) for part in row) + "\n" for row in rows)


def prints(rows, want, *options):
    """The program prints these lines for these rows."""
    result = spans(text_of(rows), *options)
    assert result.code == 0, f"status {result.code} with {options}: {result.stderr[-200:]}"
    got, lines = result.stdout.splitlines(keepends=True), text_of(want).splitlines(keepends=True)
    differing = next(((a, b) for a, b in zip(got, lines) if a != b), (len(got), len(lines)))
    assert got == lines, f"with {options}, for {rows[:8]}…: {differing[0]!r} instead of {differing[1]!r}"


def some(count, width, names=("a", "b", "Zulu", "zulu", "a1", "ab")):
    """Random rows with much overlap and many that just touch."""
    rows = []
    for _ in range(count):
        start = RNG.randrange(width)
        rows.append((RNG.choice(names), start, start + RNG.randrange(1, 9)))
    return rows


def refuses(line, *before):
    """A line is refused by its number, with nothing on standard output."""
    text = "".join(row + "\n" for row in before) + line
    result = spans(text + "\na 5 6\n")
    assert (result.code, result.stdout) == (2, ""), f"status {result.code} for the line {line!r}"
    assert result.stderr.startswith(f"line {len(before) + 1}: "), f"for {line!r}: {result.stderr[:80]!r}"


def test_program_was_built():
    """The solver left a compiled program, not a script."""
    assert read_bytes(PROGRAM)[:4] == b"\x7fELF", f"{PROGRAM} is no compiled program"
    assert path(PROGRAM).stat().st_mode & 0o111, f"{PROGRAM} cannot be run"


def test_source_is_c():
    """The source is there, and the program that make builds depends on it: a source that is broken does not build."""
    built()
    source = read_text("/app/src/spans.c")
    run(["true"], files={"/app/src/spans.c": "#error not today\n"})
    broken = make()
    run(["true"], files={"/app/src/spans.c": source})
    assert broken, "make succeeds with a source that cannot be compiled"
    assert not (fault := make()), fault


def test_make_builds_anew():
    """`make clean` removes the program, and `make` builds it."""
    built()
    assert build()[1], f"{PROGRAM} is still there after make clean"
    assert run(["test", "-x", PROGRAM]).code == 0, "make has built nothing"


def test_version_is_compiled_in():
    """The version is that of the file at the time of the build, and is not read afterwards."""
    ours = pristine("app/VERSION").read_text().split("\n")[0]
    other = f"{RNG.randrange(2, 90)}.{RNG.randrange(90)}"
    built()
    assert not (fault := make(version=other)), fault
    assert spans("", "--version")[:2] == (0, f"spans {other}\n"), "a build after a change of VERSION has another version"
    run(["true"], files={"/app/VERSION": ours + "\n"})
    assert spans("", "--version").stdout == f"spans {other}\n", "the program reads VERSION when it is run"
    assert not (fault := make()), fault
    assert spans("", "--version")[:2] == (0, f"spans {ours}\n"), "the version is not that of the file"


def test_version_file_stays():
    """/app/VERSION was left as it was."""
    assert read_bytes("/app/VERSION") == pristine("app/VERSION").read_bytes(), "/app/VERSION was changed"


def test_spans_are_joined():
    """Spans that overlap, touch or lie in each other are one; others are apart."""
    prints([("a", 1, 3), ("a", 3, 5), ("a", 6, 7)], [("a", 1, 5), ("a", 6, 7)])
    prints([("a", 4, 5), ("a", 1, 9), ("a", 2, 3), ("a", 9, 10)], [("a", 1, 10)])
    prints([("b", 1, 3), ("a", 2, 4)], [("a", 2, 4), ("b", 1, 3)])
    for width in [12, 40, 300]:
        rows = some(60, width)
        prints(rows, joined(rows))


def test_order_of_names():
    """Names are in the order of their bytes, and of any length up to 32."""
    names = ["b", "B", "ab", "a", "a0", "9", "Z" * 32, "z" * 31, "10", "y" * 32]
    rows = [(name, RNG.randrange(5), 5 + RNG.randrange(1, 5)) for name in names]
    prints(rows, joined(rows))


def test_large_numbers():
    """Numbers up to 1000000000000 are exact."""
    rows = [("a", LARGEST - 1, LARGEST), ("a", 0, 1), ("b", 0, LARGEST), ("a", 2**31 - 1, 2**32 + 1)]
    prints(rows, joined(rows))
    prints(rows, totals(rows), "--total")


def test_total():
    """The total is the length of the joined spans, one line for each name."""
    prints([("x", 0, 4), ("x", 2, 6), ("x", 10, 11), ("w", 5, 6)], [("w", 1), ("x", 7)], "--total")
    for width in [12, 200]:
        rows = some(50, width)
        prints(rows, totals(rows), "--total")


def test_gap():
    """With a gap, spans that are at most that far apart are one."""
    rows = [("a", 0, 2), ("a", 5, 6), ("a", 10, 11)]
    prints(rows, [("a", 0, 6), ("a", 10, 11)], "--gap", "3")
    prints(rows, [("a", 0, 11)], "--gap", "4")
    prints(rows, rows, "--gap", "0")
    prints(rows, [("a", 0, 11)], "--gap", str(LARGEST))
    for gap in [1, 2, 7]:
        rows = some(40, 250)
        prints(rows, joined(rows, gap), "--gap", str(gap))


def test_gap_and_total():
    """Both options go together in any order, and gaps that were joined count."""
    prints([("a", 0, 2), ("a", 4, 5)], [("a", 5)], "--gap", "2", "--total")
    rows = some(40, 250)
    prints(rows, totals(rows, 3), "--total", "--gap", "3")
    prints(rows, totals(rows, 3), "--gap", "3", "--total")


def test_no_lines():
    """No lines in, no lines out; a last line without its end counts."""
    assert spans("")[:2] == (0, "") and spans("", "--total")[:2] == (0, ""), "an empty input has output"
    assert spans("a 1 2\na 7 9")[:2] == (0, "a 1 2\na 7 9\n"), "a last line without its end is lost"


def test_bad_lines():
    """Lines that are not NAME START END are refused."""
    for line in ["", "a 1", "a 1 2 3", "a  1 2", "a 1  2", " a 1 2", "a 1 2 ", "a\t1\t2", "a,1,2", "a 1.0 2", "a x 2", "a 1 x", "1 2", "a 1 2\r"]:
        refuses(line)


def test_bad_values():
    """Names and numbers beyond their limits are refused, and so are spans that do not end after their start."""
    for line in ["a_b 1 2", "é 1 2", "n" * 33 + " 1 2", "a -1 2", "a +1 2", "a 2 2", "a 3 2", f"a 1 {LARGEST + 1}", f"a {LARGEST + 1} {LARGEST + 2}", f"a 1 {2**64 + 2}", "a: 1 2", "a/ 1 2", "a@ 1 2", "a[ 1 2", "a` 1 2", "a{ 1 2", "a 1/ 2", "a 1: 2"]:
        refuses(line)


def test_bad_lines_are_numbered():
    """The first bad line is named, and nothing of the good ones before it is printed."""
    refuses("a 2 1", "a 1 2", "b 1 2", "c 0 1")
    refuses("", *[f"a {n} {n + 1}" for n in range(RNG.randrange(70, 200))])
    result = spans("a 1 2\nb 1 2 3\nc 2 1\n", "--total")
    assert (result.code, result.stdout) == (2, "") and result.stderr.startswith("line 2: "), f"with --total: {result}"


def test_bad_options():
    """Options that are not known or not complete give status 64, and nothing is printed."""
    for options in [["--sum"], ["-t"], ["--gap"], ["--gap", "x"], ["--gap", "-1"], ["--gap", "1x"], ["--gap", "1/"], ["--gap", ""], ["--gap", str(LARGEST + 1)], ["total"], ["--total", "--gap"], ["--total", "x"], ["--version", "x"]]:
        result = spans("a 1 2\n", *options)
        assert (result.code, result.stdout) == (64, ""), f"status {result.code} with {options}"


def test_many_lines():
    """200000 lines take less than five seconds."""
    rows = [(f"n{RNG.randrange(40)}", start, start + RNG.randrange(1, 300)) for start in RNG.sample(range(10**6), 200_000)]
    result = spans(text_of(rows), "--gap", "5")
    assert result.code == 0, f"status {result.code} with 200000 lines"
    assert result.stdout == text_of(joined(rows, 5)), "the spans of 200000 lines are wrong"
