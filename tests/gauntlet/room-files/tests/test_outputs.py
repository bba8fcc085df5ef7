# termsmith-canary 9fbeee7a-9470-40a7-a480-61aa71eb576b
"""Recomputes usage and rejected lines from the pristine readings, and compares."""

import functools
from datetime import datetime
from decimal import Decimal

from subject import listdir, pristine, read_bytes, read_json, read_text

FILES = ["harbour.csv", "north.csv", "south.csv"]
MEMBERS = {"readings", "kwh", "replaced", "longest_gap"}


def reading(line):
    """Meter, time and value of a line, or None."""
    fields = line.split(",")
    if len(fields) != 3:
        return None
    meter, at, kwh = fields
    whole, point, tenth = kwh.partition(".")
    if len(meter) != 5 or meter[0] != "M" or not is_digits(meter[1:]):
        return None
    if not (is_digits(whole) and point and len(tenth) == 1 and is_digits(tenth)):
        return None
    shape = "".join("9" if is_digits(letter) else letter for letter in at)
    if shape != "9999-99-99T99:99":
        return None
    try:
        return meter, datetime.fromisoformat(at), Decimal(kwh)
    except ValueError:
        return None


def is_digits(text):
    return text != "" and all(letter in "0123456789" for letter in text)


@functools.cache
def truth():
    """What counts, meter by meter in the order of time, and what is rejected."""
    counts, rejected = {}, []
    for name in FILES:
        lines = pristine(f"app/readings/{name}").read_text().split("\n")[1:-1]
        for number, line in enumerate(lines, start=2):
            found = reading(line)
            if found is None:
                rejected.append((name, number, line))
            else:
                counts.setdefault(found[0], {})[found[1]] = found[2]
    return {meter: sorted(values.items()) for meter, values in counts.items()}, rejected


def report():
    """The report, which must be an object of objects."""
    found = read_json("/app/report/usage.json")
    assert isinstance(found, dict), "usage.json is no object"
    for meter, entry in found.items():
        assert isinstance(entry, dict) and set(entry) == MEMBERS, f"{meter} does not have the members {sorted(MEMBERS)}"
        for name, value in entry.items():
            kinds = (int, float) if name == "kwh" else int
            assert isinstance(value, kinds) and not isinstance(value, bool), f"{name} of {meter} is {value!r}"
    return found


def compare(member, of):
    """One member of every meter is what `of` makes of its readings."""
    found = report()
    for meter, values in truth()[0].items():
        want = of(values)
        assert meter in found, f"{meter} is missing"
        assert abs(Decimal(str(found[meter][member])) - want) < Decimal("0.001"), f"{member} of {meter} is {found[meter][member]}, not {want}"


def test_all_meters():
    """There is a member for each meter that has a reading, and none else."""
    want = set(truth()[0])
    assert set(report()) == want, f"meters: {sorted(report())}, not {sorted(want)}"


def test_readings_counted():
    """Readings of the same meter and time count once."""
    compare("readings", len)


def test_usage():
    """Usage is the sum of increases, with replaced meters beginning at 0; of two readings the later file's counts."""

    def usage(values):
        pairs = zip(values, values[1:])
        return sum((now if now < last else now - last for (_, last), (_, now) in pairs), Decimal(0))

    compare("kwh", usage)


def test_replacements():
    """A meter was replaced as often as a reading is lower than the one before."""
    compare("replaced", lambda values: sum(now < last for (_, last), (_, now) in zip(values, values[1:])))


def test_longest_gap():
    """The longest time between two readings that follow each other, in minutes."""

    def gap(values):
        return max((int((now - last).total_seconds()) // 60 for (last, _), (now, _) in zip(values, values[1:])), default=0)

    compare("longest_gap", gap)


def test_rejected_lines():
    """Every line that is no reading is listed with its file and number, and nothing else is."""
    text = read_text("/app/report/rejected.tsv")
    lines = text.removesuffix("\n").split("\n")
    found = [tuple(line.split("\t")) for line in lines]
    want = [(name, str(number), line) for name, number, line in truth()[1]]
    assert sorted(found) == sorted(want), f"missing {sorted(set(want) - set(found))}, too many {sorted(set(found) - set(want))}"


def test_rejected_lines_in_order():
    """Rejected lines are in the order of file names, and of lines within a file."""
    lines = read_text("/app/report/rejected.tsv").removesuffix("\n").split("\n")
    found = [tuple(line.split("\t")[:2]) for line in lines]
    assert found == [(name, str(number)) for name, number, _ in truth()[1]], "rejected.tsv is in another order"


def test_readings_untouched():
    """The given files are as they were, and no others lie beside them."""
    assert listdir("/app/readings") == FILES, f"/app/readings has {listdir('/app/readings')}"
    for name in FILES:
        assert read_bytes(f"/app/readings/{name}") == pristine(f"app/readings/{name}").read_bytes(), f"{name} was changed"
