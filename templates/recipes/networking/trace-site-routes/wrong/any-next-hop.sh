#!/bin/bash
# The reference, but a next hop need not be in reach.
set -euo pipefail
sed -i 's/^        route\["reason"\] = "no-next-hop"/        pass/' /solution/routes.py
grep -qF -e '        pass' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
