#!/usr/bin/env python3
"""Applies the guide's mask of the loss to every row of an exported `sft` file, with a tokenizer that is trained on the rows themselves.

    /tmp/readers/bin/python tests/readers/check_mask.py out/demo/data

Exits with 0 if tokens and labels are those of the messages to be learnt; otherwise it prints what is wrong and exits with 1.
"""

import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
START, END = "<|im_start|>", "<|im_end|>"
# ChatML, the template of many chat models.
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
NO_LOSS = -100


def shown_function(name):
    """A function as the guide has it."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    names = {}
    exec(next(block for block in blocks if f"def {name}(" in block), names)
    return names[name]


def tokenizer_of(rows):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = (message["content"] for row in rows for message in row["messages"])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=4000, special_tokens=[START, END], initial_alphabet=alphabet))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.chat_template = TEMPLATE
    return fast


def learnt_text(row):
    flags = iter(row["train"])
    text = ""
    for i, message in enumerate(row["messages"]):
        if message["role"] == "assistant" and i >= row["n_context"] and next(flags):
            text += f"{START}assistant\n{message['content']}{END}\n"
    return text


def faults(row, tokens_and_labels, tokenizer):
    tokens, labels = tokens_and_labels(row, tokenizer)
    if len(tokens) != len(labels):
        yield f"{len(tokens)} tokens and {len(labels)} labels"
    if tokenizer.decode(tokens) != tokenizer.apply_chat_template(row["messages"], tokenize=False):
        yield "the tokens are not those of the conversation"
    if tokenizer.decode([label for label in labels if label != NO_LOSS]) != learnt_text(row):
        yield "the labels are not those of the messages to be learnt"


def main(data):
    rows = [row for file in sorted(Path(data).glob("sft/*.parquet")) for row in pq.read_table(file).to_pylist()]
    if not rows:
        sys.exit(f"{data} has no rows of `sft`")
    tokens_and_labels, tokenizer = shown_function("tokens_and_labels"), tokenizer_of(rows)
    wrong = [f"{row['trajectory_id']}: {fault}" for row in rows for fault in faults(row, tokens_and_labels, tokenizer)]
    if wrong:
        sys.exit("\n".join(wrong))
    masked = sum(row["train"].count(False) for row in rows)
    print(f"{len(rows)} rows, {masked} messages masked: tokens and labels are as the guide says")


if __name__ == "__main__":
    main(*sys.argv[1:])
