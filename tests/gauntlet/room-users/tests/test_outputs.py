# termsmith-canary 4fc4ba30-72d9-49b1-aabf-e00d044cba7e
"""Parses the account files that were left, and compares everything else with the image's own."""

import datetime
import pathlib
import stat

from subject import lpath, read_text

GID, MIRA, TOMAS = 4200, 4201, 4202
EPOCH = datetime.date(1970, 1, 1)
FIELDS = {"passwd": 7, "group": 4, "shadow": 9, "gshadow": 4}
CONF = "/etc/security/limits.d/archive.conf"


def parsed(text, file):
    """The entries of an account file by name, each a list of fields."""
    entries = {}
    for line in text.removesuffix("\n").split("\n"):
        fields = line.split(":")
        assert len(fields) == FIELDS[file], f"/etc/{file} has the line {line!r}"
        assert fields[0] not in entries, f"/etc/{file} has {fields[0]} twice"
        entries[fields[0]] = fields
    return entries


def left(file):
    return parsed(read_text(f"/etc/{file}"), file)


def image(file):
    """The file of the verifier's own container, in which nobody has worked."""
    return parsed(pathlib.Path(f"/etc/{file}").read_text(), file)


def entry(file, name):
    found = left(file)
    assert name in found, f"{name} is not in /etc/{file}"
    return found[name]


def members(file, name):
    """Members of a group by its last field, in any order."""
    return sorted(member for member in entry(file, name)[3].split(",") if member)


def folder(name, owner, group, mode):
    """The path is a folder, no link, of this owner, group and mode."""
    place = lpath(name)
    assert not place.is_symlink() and place.is_dir(), f"{name} is no folder"
    found = place.stat()
    have = found.st_uid, found.st_gid, oct(stat.S_IMODE(found.st_mode))
    assert have == (owner, group, oct(mode)), f"{name} is of {have}"


def test_group_archive():
    """The group has its number and is the primary group of mira and tomas, its only members."""
    name, password, number, _ = entry("group", "archive")
    assert (number, password) == (str(GID), "x"), f"archive has {number} and {password!r}"
    assert members("group", "archive") in ([], ["mira"], ["tomas"], ["mira", "tomas"]), f"members: {members('group', 'archive')}"
    primary = [name for name, fields in left("passwd").items() if fields[3] == str(GID)]
    assert sorted(primary) == ["mira", "tomas"], f"primary group of {primary}"


def test_mira():
    """Number, group, comment, home and shell of mira."""
    want = ["mira", "x", str(MIRA), str(GID), "Mira Lindqvist", "/home/mira", "/bin/bash"]
    assert entry("passwd", "mira") == want, f"mira: {entry('passwd', 'mira')}"


def test_tomas():
    """Number, group, comment, home and shell of tomas."""
    want = ["tomas", "x", str(TOMAS), str(GID), "Tomas Okafor", "/home/tomas", "/bin/bash"]
    assert entry("passwd", "tomas") == want, f"tomas: {entry('passwd', 'tomas')}"


def test_homes():
    """Both homes are folders of their owners with mode 0750."""
    folder("/home/mira", MIRA, GID, 0o750)
    folder("/home/tomas", TOMAS, GID, 0o750)


def test_passwords_are_locked():
    """No password opens the new accounts."""
    for name in ["mira", "tomas"]:
        assert entry("shadow", name)[1][:1] in ("!", "*"), f"{name} has a password field {entry('shadow', name)[1][:1]!r}…"


def test_account_of_mira_expires():
    """mira's account expires on 31 March 2031, and tomas's does not."""
    days = (datetime.date(2031, 3, 31) - EPOCH).days
    assert entry("shadow", "mira")[7] == str(days), f"mira expires on day {entry('shadow', 'mira')[7]!r}, not {days}"
    assert entry("shadow", "tomas")[7] == "", "tomas expires too"


def test_password_of_tomas_ages():
    """tomas has to change his password after 90 days and is warned 14 days before; mira has the machine's ordinary limits."""
    assert entry("shadow", "tomas")[4:6] == ["90", "14"], f"tomas: {entry('shadow', 'tomas')[4:6]}"
    assert entry("shadow", "mira")[4:6] == ["99999", "7"], f"mira: {entry('shadow', 'mira')[4:6]}"


def test_olek_cannot_log_in():
    """olek has no shell, and his hash is locked, not lost."""
    before, now = image("passwd")["olek"], entry("passwd", "olek")
    assert now == [*before[:6], "/usr/sbin/nologin"], f"olek: {now}"
    before, now = image("shadow")["olek"], entry("shadow", "olek")
    assert now[1] == "!" + before[1].lstrip("!"), f"olek's password field begins with {now[1][:4]!r}"
    assert now[2:] == before[2:], f"the ageing of olek's password is {now[2:]}"


def test_olek_is_in_no_other_group():
    """olek is a member of no group, and the others of his groups still are."""
    for file in ["group", "gshadow"]:
        inside = [name for name in left(file) if "olek" in members(file, name)]
        assert inside == [], f"olek is still in {inside} of /etc/{file}"
        assert members(file, "operators") == ["ines"] and members(file, "backup-team") == ["pavel"], f"/etc/{file} has lost members"


def test_other_accounts_stay():
    """No account beside mira, tomas and olek differs from the image's, in passwd and shadow."""
    for file in ["passwd", "shadow"]:
        before, now = image(file), left(file)
        assert set(now) == set(before) | {"mira", "tomas"}, f"/etc/{file}: {sorted(set(now) ^ set(before))}"
        changed = [name for name in before if name != "olek" and now[name] != before[name]]
        assert changed == [], f"/etc/{file} has other entries for {changed}"


def test_other_groups_stay():
    """No group but archive is new, and of the others only olek's membership has changed."""
    for file in ["group", "gshadow"]:
        before, now = image(file), left(file)
        assert set(now) == set(before) | {"archive"}, f"/etc/{file}: {sorted(set(now) ^ set(before))}"
        for name, fields in before.items():
            want = ",".join(member for member in fields[3].split(",") if member != "olek")
            assert now[name] == [*fields[:3], want], f"{name} in /etc/{file} is {now[name]}"


def test_shared_folder():
    """/srv/archive and its folder incoming have their owners and modes."""
    folder("/srv/archive", 0, GID, 0o770)
    folder("/srv/archive/incoming", TOMAS, GID, 0o750)


def test_limits():
    """The file of limits has the two rules in their order and no others."""
    lines = [line.split() for line in read_text(CONF).splitlines() if not line.lstrip().startswith("#")]
    rules = [words for words in lines if words]
    assert rules == [["@archive", "hard", "fsize", "300000"], ["@archive", "soft", "nofile", "4096"]], f"rules: {rules}"
