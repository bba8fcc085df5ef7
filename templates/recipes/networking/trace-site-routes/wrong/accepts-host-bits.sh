#!/bin/bash
# The reference, but stray bits are cleared and the route is used.
set -euo pipefail
sed -i 's/^            route\["reason"\] = "host-bits"/            route["base"] \&= mask(route["length"])/' /solution/routes.py
grep -qF -e '&= mask(route' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
