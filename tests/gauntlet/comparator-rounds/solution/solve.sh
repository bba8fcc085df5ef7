#!/bin/bash
set -e
mkdir -p /app/out
python3 - <<'END'
import csv
regions = {}
for row in csv.DictReader(open("/app/orders.csv")):
    regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
lines = []
for region in sorted(regions):
    euros, cents = divmod(regions[region], 100)
    lines.append(f"{region}\t{euros}.{cents:02}")
open("/app/out/regions.tsv", "w").write("\n".join(lines) + "\n")
END
