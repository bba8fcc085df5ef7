# differs: three small edits where the faults are, scaling done once per fold, the baseline in other white space and written by a program (tabs, no line end)
cat > solve.sh <<'EOF'
#!/bin/bash
set -euo pipefail
cd /app/evalkit
sed -i 's/^    units = .*/    units = sorted(set(row.group for row in rows))/; s/^    return .*/    return {row.id: fold_of[row.group] for row in rows}/; s/of each row id/of each row id: all rows of a group share it/' folds.py
sed -i 's/neighbours\.ranges(rows)/neighbours.ranges(train)/' report.py
python3 - <<'PY'
import pathlib

place = pathlib.Path("metrics.py")
head, rest = place.read_text().split("def macro_f1(scores):")
tail = rest[rest.index("\n\n\ndef accuracy"):]
place.write_text(head + '''def macro_f1(scores):
    """The plain mean of the labels' F1."""
    values = [score["f1"] for score in scores.values()]
    return sum(values) / len(values) if values else 0.0''' + tail)
PY
cd /app
mkdir -p /app/reports
python3 -B - <<'PY'
import json
import sys

sys.path.insert(0, "/app")
from evalkit import data, report

with open("/app/reports/baseline.json", "w") as file:
    json.dump(report.build(data.load("/app/data/labelled.csv"), 6, 4), file, indent="\t")
PY
EOF
