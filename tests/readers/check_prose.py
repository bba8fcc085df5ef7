#!/usr/bin/env python3
"""Tries to tell the sides of pairs apart by the assistant's prose alone, and fails if that works.

    python3 -m venv /tmp/readers && /tmp/readers/bin/pip install -r tests/readers/requirements.txt
    /tmp/readers/bin/python tests/readers/check_prose.py out/run/data

A logistic regression over the words of all assistant messages, without commands and tool calls, is trained on the pairs of all recipes but
some, and tried on those. An area under the curve far from 0.5 means that winners and losers speak differently, which is what a
model would learn from the pairs instead of what they do.
"""

import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

# Beyond this the prose gives the side away.
MOST_AUC = 0.7
# Groups of recipes, each held out once.
FOLDS = 5
BLOCK = re.compile(r"^(`{3,})[^\n]*\n.*?^\1\s*$", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"<tool_call>.*?</tool_call>", re.DOTALL)


def prose(message):
    """What a message says, in any of the scaffolds' protocols."""
    try:
        reply = json.loads(message)
        return f"{reply.get('analysis', '')} {reply.get('plan', '')}"
    except (ValueError, AttributeError):
        return CALL.sub(" ", BLOCK.sub(" ", message))


def side(messages):
    return "\n".join(prose(message["content"]) for message in messages if message["role"] == "assistant")


def main():
    data = Path(sys.argv[1])
    rows = [row for file in sorted((data / "pref_dmpo").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    groups = [row["split_group"] for row in rows]
    folds = min(FOLDS, len(set(groups)))
    if folds < 2:
        sys.exit("too few recipes: one must be held out")
    texts = [side(row["chosen"]) for row in rows] + [side(row["rejected"]) for row in rows]
    labels = [1] * len(rows) + [0] * len(rows)
    model = make_pipeline(CountVectorizer(min_df=2, ngram_range=(1, 2)), LogisticRegression(max_iter=2000))
    scores = cross_val_predict(model, texts, labels, groups=groups * 2, cv=GroupKFold(folds), method="decision_function")
    auc = roc_auc_score(labels, scores)
    print(f"{len(rows)} pairs of {len(set(groups))} groups: AUC {auc:.3f} by prose on held-out groups (at most {MOST_AUC})")
    if auc > MOST_AUC:
        model.fit(texts, labels)
        words = model[0].get_feature_names_out()
        weights = sorted(zip(model[1].coef_[0], words))
        print("rejected:", ", ".join(word for _, word in weights[:15]))
        print("chosen:", ", ".join(word for _, word in weights[-15:]))
        sys.exit(1)


if __name__ == "__main__":
    main()
