#!/bin/bash
# The reference, but a route without a metric has metric 0.
set -euo pipefail
sed -i 's/^PLAIN_METRIC = .*/PLAIN_METRIC = 0/' /solution/routes.py
grep -qF -e 'PLAIN_METRIC = 0' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
