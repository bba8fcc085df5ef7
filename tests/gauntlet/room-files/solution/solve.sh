#!/bin/bash
set -euo pipefail
mkdir -p /app/report
python3 - <<'PY'
import datetime
import json
import pathlib
import re

READING = re.compile(r"(M[0-9]{4}),([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}),([0-9]+)\.([0-9])")
counted, rejected = {}, []
for path in sorted(pathlib.Path("/app/readings").glob("*.csv")):
    for number, line in enumerate(path.read_text().splitlines()[1:], start=2):
        found = READING.fullmatch(line)
        try:
            time = datetime.datetime.strptime(found[2], "%Y-%m-%dT%H:%M")
        except (TypeError, ValueError):
            rejected.append(f"{path.name}\t{number}\t{line}\n")
            continue
        # Tenths are whole numbers, so sums are exact.
        counted[found[1], time] = int(found[3]) * 10 + int(found[4])

meters = {}
for (meter, time), tenths in sorted(counted.items()):
    entry = meters.setdefault(meter, {"readings": 0, "tenths": 0, "replaced": 0, "longest_gap": 0})
    if entry["readings"]:
        before, last = entry.pop("seen")
        fell = tenths < last
        entry["replaced"] += fell
        entry["tenths"] += tenths if fell else tenths - last
        entry["longest_gap"] = max(entry["longest_gap"], (time - before) // datetime.timedelta(minutes=1))
    entry["readings"] += 1
    entry["seen"] = (time, tenths)
for entry in meters.values():
    del entry["seen"]
    entry["kwh"] = entry.pop("tenths") / 10

report = pathlib.Path("/app/report")
report.joinpath("rejected.tsv").write_text("".join(rejected))
report.joinpath("usage.json").write_text(json.dumps(meters, indent=2) + "\n")
PY
