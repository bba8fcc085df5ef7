#!/bin/bash
# Reference: one model of the routers, asked for each of the four files.
set -euo pipefail
mkdir -p /app/out
python3 /solution/routes.py unusable > /app/out/unusable.csv
python3 /solution/routes.py traces > /app/out/traces.csv
python3 /solution/routes.py hits > /app/out/hits.csv
python3 /solution/routes.py summary > /app/out/summary.json
