#!/bin/bash
# Reference: one pass over the sources for each of the three files.
set -euo pipefail
mkdir -p /app/out
python3 /solution/settle.py rejects > /app/out/rejects.csv
python3 /solution/settle.py usage > /app/out/usage.csv
python3 /solution/settle.py summary > /app/out/summary.json
