# differs: the protocol in one new module (folds.py, neighbours.py, metrics.py and report.py go), F1 from counts, heap instead of sort, compact JSON in another key order, one group only gives status 2 with a message
cat > protocol.py <<'EOF'
"""The whole protocol: folds, scaling, neighbours, vote and metrics."""

import heapq
from collections import Counter, defaultdict


def build(rows, folds, k):
    groups = sorted(set(row.group for row in rows))
    fold_of_group = dict((group, number % folds) for number, group in enumerate(groups))
    parts = defaultdict(list)
    for row in rows:
        parts[fold_of_group[row.group]].append(row)

    predictions = {}
    for fold in sorted(parts):
        train = [row for other in parts if other != fold for row in parts[other]]
        lows = [min(column) for column in zip(*(row.values for row in train))]
        highs = [max(column) for column in zip(*(row.values for row in train))]

        def scaled(row):
            return [
                0.0 if low == high else (value - low) / (high - low)
                for value, low, high in zip(row.values, lows, highs)
            ]

        known = [(row.id, row.label, scaled(row)) for row in train]
        for row in parts[fold]:
            here = scaled(row)
            ranked = heapq.nsmallest(
                k,
                (
                    (round(sum((x - y) ** 2 for x, y in zip(here, there)), 9), name, label)
                    for name, label, there in known
                ),
            )
            votes = {}
            for place, (_, _, label) in enumerate(ranked):
                count, first = votes.get(label, (0, -place))
                votes[label] = (count + 1, first)
            predictions[row.id] = {"predicted": max(votes, key=votes.get), "fold": fold}

    labels = sorted(set(row.label for row in rows))
    counts = Counter((row.label, predictions[row.id]["predicted"]) for row in rows)
    confusion = {true: {predicted: counts[true, predicted] for predicted in labels} for true in labels}
    per_label = {}
    f1s = []
    for label in labels:
        hits = counts[label, label]
        support = sum(confusion[label].values())
        claimed = sum(confusion[true][label] for true in labels)
        f1s.append(2 * hits / (support + claimed))
        per_label[label] = {
            "support": support,
            "recall": round(hits / support, 6),
            "precision": round(hits / claimed, 6) if claimed else 0.0,
            "f1": round(f1s[-1], 6),
        }
    return {
        "rows": len(rows),
        "folds": folds,
        "k": k,
        "accuracy": round(sum(counts[label, label] for label in labels) / len(rows), 6),
        "macro_f1": round(sum(f1s) / len(f1s), 6),
        "per_label": per_label,
        "confusion": confusion,
        "predictions": predictions,
    }
EOF
cat > solve.sh <<'EOF'
#!/bin/bash
set -euo pipefail
cd /app
cp /solution/protocol.py evalkit/protocol.py
rm evalkit/folds.py evalkit/neighbours.py evalkit/metrics.py evalkit/report.py
python3 - <<'PY'
import pathlib

place = pathlib.Path("evalkit/__main__.py")
text = place.read_text()
for old, new in [
    ("from evalkit import data, report\n", "from evalkit import data, protocol\n"),
    (
        "    print(json.dumps(report.build(rows, options.folds, options.k), indent=2, sort_keys=True))\n",
        '''    if len({row.group for row in rows}) < 2:
        print(f"evalkit: {options.data}: there must be at least two groups", file=sys.stderr)
        return 2
    print(json.dumps(protocol.build(rows, options.folds, options.k), ensure_ascii=False))
''',
    ),
]:
    assert text.count(old) == 1
    text = text.replace(old, new)
place.write_text(text)
PY
mkdir reports
python3 -m evalkit report --k 4 --folds 6 --data /app/data/labelled.csv > reports/baseline.json
EOF
