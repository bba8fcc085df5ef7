#!/bin/bash
# Reference: case files first, then the stepping, then the customer's case.
set -euo pipefail
cd /app
cp /solution/config.py heat1d/config.py
cp /solution/solver.py heat1d/solver.py
mkdir -p results
python3 -m heat1d run cases/commission.json > results/commission.csv
