#!/bin/bash
# The reference, but the path of a loop does not name the repeated router again.
set -euo pipefail
sed -i 's/return "loop", path + \[follower\]/return "loop", path/' /solution/routes.py
grep -qF -e '"loop", path, deciding' /solution/routes.py
mkdir -p /app/out
for what in unusable traces hits; do python3 /solution/routes.py $what > /app/out/$what.csv; done
python3 /solution/routes.py summary > /app/out/summary.json
