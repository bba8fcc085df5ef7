#!/bin/bash
# The reference, but metrics are compared as text.
set -euo pipefail
sed -i 's/return route\["metric"\], route\["line"\]/return str(route["metric"]), route["line"]/' /solution/routes.py
grep -qF -e 'str(route["metric"])' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
