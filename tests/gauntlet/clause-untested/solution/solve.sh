#!/bin/bash
set -e
python3 - <<'EOF'
import csv, json
rows = list(csv.DictReader(open("/app/orders.csv")))
regions = {}
for row in rows:
    regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
report = {"total": sum(regions.values()), "count": len(rows), "by_region": regions}
json.dump(report, open("/app/report.json", "w"), indent=2)
EOF
