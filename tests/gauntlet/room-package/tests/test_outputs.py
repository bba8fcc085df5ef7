# termsmith-canary 38d2a850-2f5c-4693-8271-d4778ad7d9eb
"""Reads dpkg's database as data, and runs the installed program on tables that nobody has seen."""

import hashlib
import pathlib
import random

from subject import exists, listdir, path, pristine, read_bytes, read_text, run

WANTED = {"stockwatch": "2.0", "stockwatch-rules": "2.1"}
CONF = "/etc/stockwatch.conf"
INFO = "/var/lib/dpkg/info"
CHANGED = {"limit": "25", "order": "quantity", "limit.dry": "40"}


def tree(package):
    """The package as it was built."""
    return pristine(f"packages/{package}-{WANTED[package]}")


def files_of(package):
    """What the package installs, as paths from the root."""
    top = tree(package)
    found = [place.relative_to(top) for place in sorted(top.rglob("*")) if place.is_file()]
    return [f"/{place}" for place in found if place.parts[0] != "DEBIAN"]


def database():
    """dpkg's records by package."""
    return parsed(read_text("/var/lib/dpkg/status"))


def parsed(text):
    """The records of a status file; a field that goes on over several lines is one text."""
    records = {}
    for stanza in text.split("\n\n"):
        fields, name = {}, None
        for line in stanza.split("\n"):
            if line[:1] in (" ", "\t"):
                assert name, f"dpkg's status begins with {line!r}"
                fields[name] += "\n" + line.strip()
            elif line:
                name, _, value = line.partition(":")
                assert name not in fields, f"{name} stands twice in a record"
                fields[name] = value.strip()
        if fields:
            package = fields.get("Package")
            assert package and package not in records, f"dpkg's status has {package} twice"
            records[package] = fields
    return records


def state(package):
    """Wish, fault and state of a package."""
    return database().get(package, {}).get("Status", "unknown ok not-installed").split()


def settings(text):
    """Names and values of a configuration, in its order."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return [tuple(part.strip() for part in line.split("=", 1)) for line in lines]


def test_old_package_is_purged():
    """dpkg knows nothing of stocklist, neither in its status nor by files of its own."""
    assert state("stocklist")[2] == "not-installed", f"stocklist: {state('stocklist')}"
    left = [name for name in listdir(INFO) if name.split(".")[0] == "stocklist"]
    assert not left, f"{INFO} still has {left}"


def test_old_files_are_gone():
    """Neither the program nor the configuration of stocklist is left."""
    for name in ["/etc/stocklist.conf", "/usr/lib/stocklist"]:
        assert not exists(name), f"{name} is still there"


def test_new_packages_are_installed():
    """stockwatch and its dependency are installed and configured, in the versions that belong together."""
    for package, version in WANTED.items():
        record = database().get(package, {})
        assert state(package)[1:] == ["ok", "installed"], f"{package}: {state(package)}"
        assert record["Version"] == version, f"{package} has version {record['Version']}"
        for line in (tree(package) / "DEBIAN/control").read_text().splitlines():
            name, _, value = line.partition(": ")
            assert record.get(name) == value, f"{name} of {package} is {record.get(name)}, not {value}"


def test_nothing_is_pending():
    """No package is half installed, and none waits for another; the database of updates is empty."""
    for package, fields in database().items():
        assert fields["Status"].split()[1:] == ["ok", "installed"], f"{package}: {fields['Status']}"
    assert listdir("/var/lib/dpkg/updates") == [], "dpkg has unfinished updates"


def test_other_packages_stay():
    """Beside the packages that are named, exactly those of the image are installed."""
    ours = set(parsed(pathlib.Path("/var/lib/dpkg/status").read_text())) - {"stocklist"}
    assert set(database()) == ours | set(WANTED), f"not as before: {sorted(set(database()) ^ (ours | set(WANTED)))}"


def test_database_lists_the_files():
    """dpkg's own lists name each file of the packages, and its checksums are theirs."""
    for package in WANTED:
        listed = read_text(f"{INFO}/{package}.list").split("\n")
        sums = dict(reversed(line.split("  ", 1)) for line in read_text(f"{INFO}/{package}.md5sums").splitlines())
        for name in files_of(package):
            assert name in listed, f"{name} is not in the list of {package}"
            if name != CONF:
                want = hashlib.md5(tree(package).joinpath(name[1:]).read_bytes()).hexdigest()
                assert sums.get(name[1:]) == want, f"the checksum of {name} is {sums.get(name[1:])}"


def test_configuration_is_known_to_dpkg():
    """The configuration is recorded with the checksum that the package brought."""
    want = f"{CONF} {hashlib.md5(tree('stockwatch').joinpath(CONF[1:]).read_bytes()).hexdigest()}"
    assert database().get("stockwatch", {}).get("Conffiles", "").split("\n")[1:] == [want], f"{CONF} is not recorded as {want}"


def test_files_are_those_of_the_packages():
    """Each installed file but the configuration has the archive's content, and programs can be run."""
    for package in WANTED:
        for name in files_of(package):
            if name != CONF:
                assert read_bytes(name) == tree(package).joinpath(name[1:]).read_bytes(), f"{name} is not the package's"
    mode = path("/usr/lib/stockwatch/stockwatch").stat().st_mode & 0o777
    assert mode == 0o755, f"the program has mode {mode:o}"


def test_rules_are_on_hold():
    """stockwatch-rules is on hold, and nothing else is."""
    held = [package for package, fields in database().items() if fields["Status"].split()[0] == "hold"]
    assert held == ["stockwatch-rules"], f"on hold: {held}"


def test_settings_are_changed():
    """limit, order and the limit of the shelf dry are as asked for, each set once."""
    found = settings(read_text(CONF))
    for name, value in CHANGED.items():
        assert [pair for pair in found if pair[0] == name] == [(name, value)], f"{name} is not set to {value}, once"


def test_rest_of_the_configuration_stays():
    """The other settings and every comment are the package's."""
    shipped, text = tree("stockwatch").joinpath(CONF[1:]).read_text(), read_text(CONF)
    kept = [pair for pair in settings(text) if pair[0] not in CHANGED]
    assert kept == [pair for pair in settings(shipped) if pair[0] not in CHANGED], f"other settings: {kept}"
    comments = [[line for line in of.split("\n") if line.startswith("#")] for of in (text, shipped)]
    assert comments[0] == comments[1], "comments have changed"


def listing(rows):
    """What stockwatch has to print for these rows."""
    limits = {"dry": 40, "cold": 12}
    low = [(quantity, item) for item, shelf, quantity in rows if quantity < limits.get(shelf, 25)]
    return "".join(f"{item}:{quantity}\n" for quantity, item in sorted(low))


def lists(rows):
    """The installed program agrees on a table of these rows."""
    text = "item,shelf,quantity\n" + "".join(f"{item},{shelf},{quantity}\n" for item, shelf, quantity in rows)
    result = run(["/usr/lib/stockwatch/stockwatch", "/tmp/held-out.csv"], cwd="/tmp", files={"/tmp/held-out.csv": text})
    assert result.code == 0, f"status {result.code}: {result.stderr[-200:]}"
    assert result.stdout == listing(rows), f"for {rows} it printed {result.stdout[:200]!r}"


def test_limits_are_used():
    """The program knows the common limit and those of the shelves cold and dry, to the piece."""
    around = [("a", "top", 24), ("b", "top", 25), ("c", "dry", 39), ("d", "dry", 40), ("e", "cold", 11), ("f", "cold", 12), ("g", "top", 0)]
    lists(around)
    lists([row for row in around if row[2] % 2])


def test_random_tables():
    """On random tables the program lists what is low, by quantity."""
    rng = random.Random()
    for _ in range(3):
        names = rng.sample([f"{word}{number}" for word in ("bolt", "nut", "rivet") for number in range(30)], 25)
        lists([(name, rng.choice(["dry", "cold", "top", "door"]), rng.randrange(60)) for name in names])
