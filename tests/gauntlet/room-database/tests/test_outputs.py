# termsmith-canary 70631424-145f-40d9-a529-f11dc2fe214e
"""Migrates the pristine rows in plain Python, compares, and tries the constraints on a copy of the database."""

import contextlib
import functools
import sqlite3

from subject import listdir, pristine, read_bytes

# Steps of SQLite's machine that one check may take: views are programs of whoever wrote them.
MAX_STEPS = 2_000_000
# Bytes of one value, as such a program could make them.
MAX_VALUE = 1 << 20
TABLES = {"members": ["id", "name", "email", "joined"], "books": ["id", "title", "author"], "loans": ["id", "member_id", "book_id", "lent", "returned"]}


@functools.cache
def old():
    """The rows before: members and loans."""
    base = sqlite3.connect(":memory:")
    base.executescript(pristine("app/library.sql").read_text())
    return base.execute("SELECT * FROM members ORDER BY id").fetchall(), base.execute("SELECT * FROM loans ORDER BY id").fetchall()


def iso(date):
    day, month, year = date.split(".")
    return f"{year}-{month}-{day}"


@functools.cache
def truth():
    """The rows as they shall be, by table."""
    keeper, members = {}, {}
    for number, name, email, joined in old()[0]:
        email = email.strip().lower()
        known = members.setdefault(email, [number, name, email, iso(joined)])
        known[3] = min(known[3], iso(joined))
        keeper[number] = known[0]
    pairs = sorted({(author.strip(), title.strip()) for _, _, title, author, _, _ in old()[1]}, key=lambda pair: [word.encode() for word in pair])
    books = {pair: number for number, pair in enumerate(pairs, start=1)}
    loans = [
        (number, keeper[member], books[author.strip(), title.strip()], iso(lent), iso(returned) if returned else None)
        for number, member, title, author, lent, returned in old()[1]
        if member in keeper
    ]
    return {
        "members": sorted(tuple(row) for row in members.values()),
        "books": [(number, title, author) for (author, title), number in books.items()],
        "loans": loans,
    }


@contextlib.contextmanager
def database():
    """A copy of the subject's database in memory, with a bound on what its own views and triggers may do."""
    base = sqlite3.connect(":memory:", isolation_level=None)
    steps = 0

    def count():
        nonlocal steps
        steps += 1000
        return steps > MAX_STEPS

    try:
        content = read_bytes("/app/library.db")
        assert content[:16] == b"SQLite format 3\0", "/app/library.db is no SQLite database"
        assert content[18:20] == b"\x01\x01", "the journal mode is wal"
        base.deserialize(content)
        base.execute("PRAGMA trusted_schema = OFF")
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        base.set_progress_handler(count, 1000)
        yield base
    except sqlite3.Error as error:
        raise AssertionError(f"the database cannot be used: {error}") from None
    finally:
        base.close()


def rows(query):
    with database() as base:
        return base.execute(query).fetchall()


def compare(table):
    """All rows of a table are those of the migrated pristine ones."""
    found = rows(f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY id")
    want = truth()[table]
    differing = sorted(set(map(repr, found)) ^ set(map(repr, want)))
    assert found == want, f"{table} has {len(found)} rows, not {len(want)}; differing: {differing[:4]}"


def refused(*statements):
    """Each statement is refused by a constraint, tried alone."""
    for statement in statements:
        with database() as base:
            base.execute("PRAGMA foreign_keys = ON")
            try:
                base.execute(statement)
            except sqlite3.IntegrityError:
                continue
        raise AssertionError(f"not refused: {statement}")


def accepted(*statements):
    """All statements together go through, and the database is whole afterwards."""
    with database() as base:
        base.execute("PRAGMA foreign_keys = ON")
        for statement in statements:
            base.execute(statement)
        assert base.execute("PRAGMA foreign_key_check").fetchall() == [], "a foreign key leads nowhere"


def test_tables_and_views():
    """There are the three tables with their columns and the view, nothing else, and the version is 2."""
    found = rows("SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view', 'trigger') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
    assert found == [("table", "books"), ("table", "loans"), ("table", "members"), ("view", "out_now")], f"in the database: {found}"
    for table, columns in TABLES.items():
        have = [row[1] for row in rows(f"PRAGMA table_info({table})")]
        assert have == columns, f"{table} has the columns {have}"
    assert rows("PRAGMA user_version") == [(2,)], "user_version is not 2"


def test_primary_keys():
    """Each id is an INTEGER PRIMARY KEY, by which SQLite numbers new rows."""
    for table in TABLES:
        keys = [(row[1], row[2].upper()) for row in rows(f"PRAGMA table_info({table})") if row[5]]
        assert keys == [("id", "INTEGER")], f"the key of {table} is {keys}"


def test_database_is_whole():
    """SQLite finds no fault in the file, and no journal lies beside it."""
    assert rows("PRAGMA integrity_check") == [("ok",)], "the file is damaged"
    assert rows("PRAGMA foreign_key_check") == [], "a foreign key leads nowhere"
    beside = [name for name in listdir("/app") if name.startswith("library.db") and name != "library.db"]
    assert beside == [], f"beside the database: {beside}"


def test_members():
    """Members are merged by email, the lowest id and the earliest date stay."""
    compare("members")


def test_books():
    """Every pair of title and author is one book, numbered by author and title."""
    compare("books")


def test_loans():
    """Every loan of a member leads to the right member and book, with its dates."""
    compare("loans")


def test_emails_are_unique():
    """A second member with the same email is refused, and so is one without; another one is accepted."""
    taken = truth()["members"][0][2]
    refused(f"INSERT INTO members (id, name, email, joined) VALUES (9001, 'Twin', '{taken}', '2024-01-01')", "INSERT INTO members (id, name, joined) VALUES (9002, 'Nobody', '2024-01-01')")
    refused(f"UPDATE members SET email = '{taken}' WHERE id = {truth()['members'][1][0]}")
    accepted("INSERT INTO members (name, email, joined) VALUES ('New', 'new.one@post.example', '2024-01-01')")


def test_books_are_unique():
    """A pair of title and author is refused a second time; either may occur again with another partner."""
    _, title, author = truth()["books"][0]
    other = next(known for _, known, by in truth()["books"] if by != author and known != title)
    insert = "INSERT INTO books (title, author) VALUES ({}, {})"
    word = lambda text: "'" + text.replace("'", "''") + "'"
    refused(insert.format(word(title), word(author)), insert.format("NULL", word(author)), insert.format(word(title), "NULL"))
    accepted(insert.format(word(title), "'Somebody New'"), insert.format("'Quite New'", word(author)), insert.format(word(other), word(author)))


def test_foreign_keys():
    """Loans of unknown members or books are refused, and so are loans without them; what has loans cannot be deleted."""
    insert = "INSERT INTO loans (member_id, book_id, lent, returned) VALUES ({}, {}, '2024-01-05', NULL)"
    member, book = truth()["loans"][0][1:3]
    refused(insert.format(99999, book), insert.format(member, 99999), insert.format("NULL", book), insert.format(member, "NULL"))
    refused(f"DELETE FROM members WHERE id = {member}", f"DELETE FROM books WHERE id = {book}")
    accepted(insert.format(member, book))
    keys = sorted((row[3], row[2], row[4] or "id") for row in rows("PRAGMA foreign_key_list(loans)"))
    assert keys == [("book_id", "books", "id"), ("member_id", "members", "id")], f"foreign keys: {keys}"


def test_dates_of_loans_are_checked():
    """A loan cannot be returned before it is lent; on the same day it can, and while it is out it has no date."""
    member, book = truth()["loans"][0][1:3]
    insert = f"INSERT INTO loans (member_id, book_id, lent, returned) VALUES ({member}, {book}, '2024-03-10', {{}})"
    refused(insert.format("'2024-03-09'"), insert.format("'2023-12-31'"))
    accepted(insert.format("'2024-03-10'"), insert.format("'2024-03-11'"), insert.format("NULL"))


def test_view():
    """out_now shows the loans that are out, with member and title."""
    names = {row[0]: row[1] for row in truth()["members"]}
    titles = {row[0]: row[1] for row in truth()["books"]}
    want = [(number, names[member], titles[book], lent) for number, member, book, lent, returned in truth()["loans"] if returned is None]
    found = rows("SELECT loan_id, name, title, lent FROM out_now ORDER BY loan_id")
    assert found == want, f"out_now has {len(found)} rows, not {len(want)}"


def test_view_is_alive():
    """out_now follows what happens later: a loan that comes back leaves it, and a new one is in it."""
    gone = next(row for row in truth()["loans"] if row[4] is None)
    with database() as base:
        before = base.execute("SELECT count(*) FROM out_now").fetchone()[0]
        base.execute(f"UPDATE loans SET returned = '2031-01-01' WHERE id = {gone[0]}")
        assert base.execute(f"SELECT count(*) FROM out_now WHERE loan_id = {gone[0]}").fetchone() == (0,), "a loan that came back is still out"
        base.execute(f"INSERT INTO loans (id, member_id, book_id, lent, returned) VALUES (9000, {gone[1]}, {gone[2]}, '2031-01-02', NULL)")
        assert base.execute("SELECT lent FROM out_now WHERE loan_id = 9000").fetchall() == [("2031-01-02",)], "a new loan is not out"
        assert base.execute("SELECT count(*) FROM out_now").fetchone()[0] == before, "the view has other rows than before"
