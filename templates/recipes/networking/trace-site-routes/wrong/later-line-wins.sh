#!/bin/bash
# The reference, but the later of two equal routes wins.
set -euo pipefail
sed -i 's/return route\["metric"\], route\["line"\]/return route["metric"], -route["line"]/' /solution/routes.py
grep -qF -e '-route["line"]' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
