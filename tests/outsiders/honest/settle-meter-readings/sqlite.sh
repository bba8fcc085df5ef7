# differs: does the work in an SQLite database in memory; summary.json has other spacing and key order; lines end without the last line end in rejects.csv
cat > settle.py <<'P'
"""Readings of two systems, settled in SQL."""
import csv
import json
import os
import re
import sqlite3
from fractions import Fraction

DATA, OUT = "/app/data/", "/app/out/"
db = sqlite3.connect(":memory:")
db.executescript("""
create table meter (name text primary key, site text);
create table row (file text, line int, id text, meter text, month text, kj int, bad text);
create table fix (seq int, id text, action text, kj int);
""")


def rows(name):
    with open(DATA + name, newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def kj(amount, unit):
    value = Fraction(amount) * {"KJ": 1, "MJ": 10**3, "GJ": 10**6}[unit.upper()]
    assert value.denominator == 1
    return int(value)


db.executemany("insert into meter values (:meter, :site)", rows("meters.csv"))
with open(DATA + "gateway.jsonl", encoding="utf-8") as file:
    for number, text in enumerate(file):
        one = json.loads(text)
        count = one["count"]
        fine = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        (month,) = db.execute("select strftime('%Y-%m', ?, 'unixepoch')", [one["ts"]]).fetchone()
        db.execute("insert into row values ('gateway.jsonl', ?, ?, ?, ?, ?, ?)",
                   [number + 1, one["id"], one["meter"], month, count if fine else None, None if fine else "bad-amount"])
for number, one in enumerate(rows("handheld.csv")):
    bad = None
    if not re.fullmatch("[0-9]+([.][0-9]+)?", one["amount"]):
        bad = "bad-amount"
    elif one["unit"].upper() not in ("KJ", "MJ", "GJ"):
        bad = "bad-unit"
    db.execute("insert into row values ('handheld.csv', ?, ?, ?, ?, ?, ?)",
               [number + 2, one["reading_id"], one["meter"], one["read_at"][:7], None if bad else kj(one["amount"], one["unit"]), bad])
for one in rows("corrections.csv"):
    db.execute("insert into fix values (?, ?, ?, ?)",
               [int(one["seq"]), one["reading_id"], one["action"], kj(one["amount"], one["unit"]) if one["action"] == "set" else None])
db.executescript("""
update row set bad = 'unknown-meter' where bad is null and meter not in (select name from meter);
create view ranked as select *, row_number() over (partition by id order by file, line desc) as place from row where bad is null;
create table reading as select * from ranked where place = 1;
create table last as select * from (select *, row_number() over (partition by id order by seq desc) as place from fix)
    where place = 1 and id in (select id from reading);
create table kept as select site, month, coalesce(last.kj, reading.kj) as kj
    from reading join meter on meter.name = reading.meter left join last on last.id = reading.id
    where coalesce(last.action, 'set') <> 'void';
""")


def count(what):
    return db.execute("select count(*) from " + what).fetchone()[0]


def mj(value):
    return "%d.%03d" % divmod(value, 1000)


os.makedirs(OUT, exist_ok=True)
with open(OUT + "usage.csv", "w", encoding="utf-8") as file:
    file.write("site,month,readings,MJ\n")
    for site, month, number, total in db.execute("select site, month, count(*), sum(kj) from kept group by 1, 2 order by 1, 2"):
        file.write(f"{site},{month},{number},{mj(total)}\n")
with open(OUT + "rejects.csv", "w", encoding="utf-8") as file:
    lines = db.execute("select file, line, bad from row where bad is not null order by 1, 2")
    file.write("\n".join(["file,line,reason"] + [",".join(map(str, line)) for line in lines]))
with open(OUT + "summary.json", "w", encoding="utf-8") as file:
    json.dump({
        "total_mj": float(mj(db.execute("select coalesce(sum(kj), 0) from kept").fetchone()[0])),
        "readings_kept": count("kept"),
        "voided": count("last where action = 'void'"),
        "corrected": count("last where action = 'set'"),
        "orphan_corrections": count("fix where id not in (select id from reading)"),
        "duplicates_dropped": count("ranked where place > 1"),
        "rejected": count("row where bad is not null"),
        "rows_read": count("row"),
    }, file, indent=4)
    file.write("\n")
P
printf '#!/bin/bash\nset -euo pipefail\npython3 -B /solution/settle.py\n' > solve.sh
