#!/bin/bash
# Violates: "Earlier `predictions.jsonl` and `report.json` in it are replaced, other files in it stay as they are"
# Shown by: OUTDIR with a file notes.json or week12.jsonl of the user: it must stay as it is, but all *.json and *.jsonl in OUTDIR are removed as earlier results
set -euo pipefail
cat > /app/predict.py <<'PREDICT_PY'
#!/usr/bin/env python3
"""predict.py WEIGHTS ITEMS JUDGEMENTS OUTDIR

Predicts a class for every item with a softmax regression, and compares the
predictions with the gold labels that follow from the annotators' votes.
Standard library only.
"""
import csv
import json
import math
import os
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction

TIE = 1e-9          # probabilities this close to the highest count as equal
SMALL = 1e4         # terms up to this size leave floats exact enough


def lcm(values):
    result = 1
    for v in values:
        result = result // math.gcd(result, v) * v
    return result


class Model:
    def __init__(self, path):
        with open(path, encoding="utf-8-sig") as fh:
            w = json.load(fh, parse_float=Decimal)
        self.classes = w["classes"]
        self.features = w["features"]
        exact = {k: [Fraction(v) for v in w[k]] for k in ("mean", "scale", "b")}
        rows = [[Fraction(v) for v in row] for row in w["W"]]
        self.mean, self.scale = exact["mean"], exact["scale"]
        # W and b as whole numbers over the common denominator `den`
        self.den = lcm([v.denominator for row in rows for v in row]
                       + [v.denominator for v in exact["b"]])
        self.W = [[int(v * self.den) for v in row] for row in rows]
        self.b = [int(v * self.den) for v in exact["b"]]
        # the same as floats
        self.fmean = [float(v) for v in w["mean"]]
        self.fscale = [float(v) for v in w["scale"]]
        self.fW = [[float(v) for v in row] for row in w["W"]]
        self.fb = [float(v) for v in w["b"]]
        self.fmax = [max((abs(row[j]) for row in self.fW), default=0.0)
                     for j in range(len(self.features))]
        self.fbmax = max((abs(v) for v in self.fb), default=0.0)

    def float_gaps(self, given):
        """Logits minus the highest one, or None where floats may not do."""
        try:
            size = self.fbmax
            terms = []
            for j, x in given:
                x = float(x)
                size += (self.fmax[j] * (abs(x) + abs(self.fmean[j]))
                         / self.fscale[j])
                terms.append((j, (x - self.fmean[j]) / self.fscale[j]))
        except (OverflowError, ZeroDivisionError):
            return None
        if not size < SMALL:
            return None
        logits = [math.fsum([row[j] * z for j, z in terms] + [b])
                  for row, b in zip(self.fW, self.fb)]
        top = max(logits)
        return [v - top for v in logits]

    def exact_gaps(self, given):
        terms = [(j, (Fraction(x) - self.mean[j]) / self.scale[j])
                 for j, x in given]
        common = lcm([z.denominator for _, z in terms])
        whole = [(j, z.numerator * (common // z.denominator)) for j, z in terms]
        logits = [sum(row[j] * z for j, z in whole) + b * common
                  for row, b in zip(self.W, self.b)]
        top = max(logits)
        den = self.den * common
        gaps = []
        for v in logits:
            try:
                gaps.append((v - top) / den)
            except OverflowError:
                gaps.append(-math.inf)
        return gaps

    def predict(self, features):
        given = []
        for j, name in enumerate(self.features):
            x = features.get(name)
            if x is not None:
                given.append((j, x))
        gaps = self.float_gaps(given)
        if gaps is None:
            gaps = self.exact_gaps(given)
        powers = [math.exp(g) for g in gaps]
        total = math.fsum(powers)
        probs = [p / total for p in powers]
        floor = max(probs) - TIE
        label = next(c for c, p in zip(self.classes, probs) if p >= floor)
        return label, dict(zip(self.classes, probs))


def read_items(path):
    items = []
    with open(path, encoding="utf-8-sig", newline="\n") as fh:
        for line in fh:
            if line.strip():
                o = json.loads(line, parse_float=Decimal)
                items.append((o["id"], o["features"]))
    return items


def instant(text):
    """All times are UTC, so (date and time, microseconds) sorts by instant."""
    text = text[:-1] if text.endswith("Z") else text[:-len("+00:00")]
    whole, _, fraction = text.partition(".")
    return whole, fraction.ljust(6, "0")


def read_votes(path, ids):
    """item id -> list of the labels that its annotators voted for"""
    csv.field_size_limit(2**31 - 1)
    latest = {}
    with open(path, encoding="utf-8-sig", newline="") as fh:
        rows = csv.reader(fh)
        next(rows, None)
        for row in rows:
            if not row:
                continue
            item, annotator, label, time = row
            if item not in ids:
                continue
            when = instant(time)
            key = item, annotator
            if key not in latest or when >= latest[key][0]:
                latest[key] = when, label
    votes = {i: [] for i in ids}
    for (item, _), (_, label) in latest.items():
        if label != "skip":
            votes[item].append(label)
    return votes


def make_report(items, predicted, votes, classes):
    scored = tied = few = hits = 0
    tp, fp, fn = Counter(), Counter(), Counter()
    pairs = agreeing = 0
    for (item, _), guess in zip(items, predicted):
        count = Counter(votes[item])
        n = sum(count.values())
        pairs += n * (n - 1) // 2
        agreeing += sum(k * (k - 1) // 2 for k in count.values())
        if n < 2:
            few += 1
            continue
        ranked = count.most_common(2)
        if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
            tied += 1
            continue
        scored += 1
        gold = ranked[0][0]
        if gold == guess:
            hits += 1
            tp[gold] += 1
        else:
            fn[gold] += 1
            fp[guess] += 1
    f1 = []
    for c in classes:
        below = 2 * tp[c] + fp[c] + fn[c]
        f1.append(2 * tp[c] / below if below else 0.0)
    return {
        "n_items": len(items),
        "n_scored": scored,
        "n_tied": tied,
        "n_too_few": few,
        "accuracy": hits / scored if scored else None,
        "macro_f1": math.fsum(f1) / len(f1) if f1 else 0.0,
        "pair_agreement": agreeing / pairs if pairs else None,
    }


def replace(path, text):
    if os.path.lexists(path):
        os.remove(path)
    with open(path, "w", encoding="utf-8", newline="\n") as fh:
        fh.write(text)


def main(argv):
    if len(argv) != 5:
        sys.exit("usage: predict.py WEIGHTS ITEMS JUDGEMENTS OUTDIR")
    _, weights, items_path, judgements, outdir = argv
    model = Model(weights)
    items = read_items(items_path)
    votes = read_votes(judgements, {i for i, _ in items})

    lines, labels = [], []
    for item, features in items:
        label, probs = model.predict(features)
        labels.append(label)
        lines.append(json.dumps({"id": item, "label": label, "probs": probs}) + "\n")
    report = make_report(items, labels, votes, model.classes)

    os.makedirs(outdir, exist_ok=True)
    for name in os.listdir(outdir):         # results of earlier runs
        old = os.path.join(outdir, name)
        if name.endswith((".json", ".jsonl")) and os.path.isfile(old):
            os.remove(old)
    replace(os.path.join(outdir, "predictions.jsonl"), "".join(lines))
    replace(os.path.join(outdir, "report.json"), json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv)
PREDICT_PY
chmod 755 /app/predict.py
python3 /app/predict.py /app/model/weights.json /app/data/items.jsonl /app/data/judgements.csv /app/out
