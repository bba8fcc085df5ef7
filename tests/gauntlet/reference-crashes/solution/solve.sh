#!/bin/bash
set -e
python3 - <<'EOF'
import pandas
pandas.read_csv('/app/orders.csv').to_json('/app/report.json')
EOF
