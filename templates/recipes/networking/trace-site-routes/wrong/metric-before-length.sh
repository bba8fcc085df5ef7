#!/bin/bash
# The reference, but the lowest metric decides among prefixes that fit.
set -euo pipefail
sed -i 's/return max(fitting, key=.*/return min(fitting, key=lambda entry: (entry.get("metric", -1), -entry["length"]), default=None)/' /solution/routes.py
grep -qF -e 'entry.get("metric", -1)' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
