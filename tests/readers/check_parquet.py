#!/usr/bin/env python3
"""Reads an exported data folder with the readers that trainers use, and checks what they see.

    python3 -m venv /tmp/readers && /tmp/readers/bin/pip install -r tests/readers/requirements.txt
    /tmp/readers/bin/python tests/readers/check_parquet.py out/demo/data

Exits with 0 if every reader sees the same, valid rows; otherwise it prints what is wrong and exits with 1.
"""

import json
import math
import re
import sys
import tempfile
from pathlib import Path

import datasets
import duckdb
import pandas
import pyarrow
import pyarrow.parquet as pq

MESSAGES = "list<element: struct<role: string, content: string>>"
JSON = "list<element: extension<arrow.json>>"
TEXTS = "list<element: string>"
FLAGS = "list<element: bool>"


def side(name):
    """The columns about one side of a pair."""
    return {
        f"turns_{name}": "int32", f"turn_index_{name}": "list<element: int32>", f"phi_{name}": "list<element: double>",
        f"train_{name}": FLAGS, f"reward_{name}": "double", f"f2p_{name}": "double", f"p2p_{name}": "double",
        f"trajectory_id_{name}": "string", f"teacher_{name}": "string",
    }


# The columns about a rollout.
ROLLOUT = {
    "n_context": "int32", "train": FLAGS, "trajectory_id": "string", "segment": "int32", "n_segments": "int32",
    "task_id": "string", "task_digest": "string",
    "environment_digest": "string", "domain": "string", "skills": TEXTS, "operations": TEXTS, "kind": "string",
    "difficulty": "string", "language": "string", "persona": "string", "recipe": "string", "scaffold": "string",
    "agent": "string", "agent_version": "string", "thread": "string",
    "teacher": "string", "arm": "string", "seed": "int64", "attempt": "int32", "end": "string", "outcome": "string",
    "cause": "string", "failure_kind": "string", "mask_sample": "bool", "success": "bool", "reward": "double",
    "pass_ratio": "double", "f2p": "double", "p2p": "double", "n_turns": "int32", "n_tokens": "int64",
    "judge_labels": TEXTS, "judge": "string", "split_group": "string", "license": "string", "tool_version": "string",
}
SCHEMAS = {
    "sft": {"messages": MESSAGES, **ROLLOUT},
    "sft_tools": {"messages": JSON, "tools": JSON, **ROLLOUT},
    "pref_dmpo": {
        "pair_id": "string", "pair_kind": "string", "prompt": MESSAGES, "chosen": MESSAGES, "rejected": MESSAGES, "tools": JSON,
        "gamma": "double",
        "divergence_turn": "int32", "shared_turns": "int32", **side("chosen"), **side("rejected"),
        "failure_mode_rejected": "string", "judge_labels_rejected": TEXTS, "reward_kind": "string", "reward_margin": "double",
        "pair_policy": "string", "task_id": "string", "task_digest": "string", "environment_digest": "string", "domain": "string",
        "split_group": "string", "license": "string", "tool_version": "string",
    },
}
# `pref_step` has the columns of `pref_dmpo` but those about turns of trajectories.
OF_TRAJECTORIES = re.compile(r"gamma|shared_turns|(turns|turn_index|phi|train)_(chosen|rejected)")
SCHEMAS["pref_step"] = {name: kind for name, kind in SCHEMAS["pref_dmpo"].items() if not OF_TRAJECTORIES.fullmatch(name)}
VERSIONS = {"sft": b"6", "sft_tools": b"1", "pref_dmpo": b"6", "pref_step": b"2"}
# Null where nothing was measured.
MEASURED = {"reward", "pass_ratio", "f2p", "p2p"}
# Null where the maker of a task, the model's server, or an imported rollout does not say.
SAID = {"tools", "agent_version", "kind", "difficulty", "language", "persona", "recipe", "seed", "n_tokens", "license", "task_digest", "environment_digest", "failure_mode_rejected"}
MAY_BE_NULL = MEASURED | SAID

# Golden values of DMPO's weight: (γ, T, t, φ), printed with four decimals.
GOLDEN = [(0.7, 5, t, phi) for t, phi in enumerate([1.0, 0.6394, 0.3870, 0.2103, 0.0866])] + [
    (0.95, 27, 10, 0.4647),
    (0.99, 27, 10, 0.5977),
]

# JSON columns as Parquet names them.
JSON_LEAVES = ("messages.list.element", "tools.list.element")
# Columns that not all readers decode.
DECODED = ("messages", "tools")

KINDS = {"fork", "near_miss", "best_worst", "self_correction"}

SHARD = re.compile(r"(train|test)-(\d{5})-of-(\d{5})\.parquet")


def phi(gamma, turns, t):
    """The weight of assistant turn t of T = turns."""
    if gamma == 1.0:
        return (turns - t) / turns
    return gamma**t * (1 - gamma ** (turns - t)) / (1 - gamma**turns)


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def check_conversation(messages, where):
    """Optional system, then user and assistant in turn, the assistant last, nothing empty."""
    roles = [message["role"] for message in messages]
    if roles[:1] == ["system"]:
        roles = roles[1:]
    expect(roles and len(roles) % 2 == 0, where, "does not end with the assistant")
    expect(roles == ["user", "assistant"] * (len(roles) // 2), where, "does not alternate:", roles)
    expect(all(message["content"].strip() for message in messages), where, "has an empty message")


def check_function_calls(row, where):
    """Keys have values, arguments are objects, results answer calls, and flags are those of the column."""
    called, flags = set(), []
    names = {tool["function"]["name"] for tool in row["tools"] or []}
    for message in row["messages"]:
        expect(None not in message.values() and isinstance(message["content"], str), where, "has a message with null:", message)
        for call in message.get("tool_calls", []):
            called.add(call["id"])
            expect(call["type"] == "function" and isinstance(call["function"]["arguments"], dict), where, "has a call", call)
            expect(call["function"]["name"] in names, where, "calls", call["function"]["name"], "of", names)
        if message["role"] == "tool":
            expect(message["tool_call_id"] in called, where, "has a result of no call:", message["tool_call_id"])
        expect(("train" in message) == (message["role"] == "assistant"), where, "has a flag at role", message["role"])
        flags += [message["train"]] if "train" in message else []
    expect(flags[len(flags) - len(row["train"]) :] == row["train"], where, "has two kinds of flags")


def check_sft_tools(row, number):
    where = f"sft_tools row {number} ({row['trajectory_id']})"
    check_function_calls(row, where)
    check_rollout(row, where)


def check_sft(row, number):
    where = f"sft row {number} ({row['trajectory_id']})"
    check_conversation(row["messages"], where)
    expect(row["messages"][row["n_context"] - 1]["role"] == "user", where, "n_context is off")
    check_rollout(row, where)


def check_rollout(row, where):
    said = row["messages"][row["n_context"] :]
    expect(said[0]["role"] == "assistant" and said[-1]["role"] == "assistant", where, "n_context is off")
    turns = sum(message["role"] == "assistant" for message in said)
    expect(0 <= row["segment"] and 1 <= row["n_segments"], where, "segment is", row["segment"])
    expect(row["n_turns"] == turns, where, "n_turns is", row["n_turns"], "not", turns)
    expect(len(row["train"]) == turns, where, "has", len(row["train"]), "flags for", turns, "turns")
    honest = row["outcome"] == "pass" and row["failure_kind"] != "exploit"
    expect(row["success"] == honest, where, "success and outcome disagree")
    measured = row["outcome"] in ("pass", "fail", "timeout")
    for name in MEASURED:
        expect((row[name] is not None) == measured, where, name, "is", row[name], "with outcome", row["outcome"])
    if measured:
        expect((row["reward"] == 1.0) == row["success"], where, "reward and success disagree")
        expect(0.0 <= row["pass_ratio"] <= 1.0, where, "pass_ratio is", row["pass_ratio"])


def check_pair(row, number):
    where = f"pref_dmpo row {number} ({row['pair_id']})"
    expect(row["reward_chosen"] > row["reward_rejected"], where, "the chosen side is not better")
    expect(row["p2p_chosen"] == 1.0, where, "the chosen side breaks a P2P check")
    expect(row["reward_margin"] == row["reward_chosen"] - row["reward_rejected"], where, "wrong margin")
    expect(row["pair_kind"] in KINDS, where, "is of kind", row["pair_kind"])
    policy = json.loads(row["pair_policy"])
    expect(policy["reward"] == row["reward_kind"], where, "pair_policy and reward_kind disagree")
    expect(row["reward_margin"] >= policy["min_margin"], where, "margin below the policy's")
    turns = sorted([row["turns_chosen"], row["turns_rejected"]])
    expect(turns[1] <= policy["max_turn_ratio"] * turns[0], where, "turn counts too far apart:", turns)
    expect(row["shared_turns"] <= row["divergence_turn"], where, "shares more than precedes the divergence")
    shared = 2 * row["shared_turns"]
    expect(row["chosen"][:shared] == row["rejected"][:shared], where, "the shared turns differ")
    for name in ("chosen", "rejected"):
        if row["reward_kind"] == "f2p":
            gated = row[f"f2p_{name}"] if row[f"p2p_{name}"] == 1.0 else 0.0
            expect(row[f"reward_{name}"] == gated, where, name, "reward is not its f2p")
        check_conversation(row["prompt"] + row[name], f"{where} {name}")
        said = [at for at, message in enumerate(row[name]) if message["role"] == "assistant"]
        expect(row[f"turn_index_{name}"] == said, where, name, "turn_index is", row[f"turn_index_{name}"])
        expect(row[f"turns_{name}"] == len(said), where, name, "turns is", row[f"turns_{name}"])
        expect(len(row[f"train_{name}"]) == len(said), where, name, "has too many or too few flags")
        want = [phi(row["gamma"], len(said), t) for t in range(len(said))]
        close = [math.isclose(a, b, rel_tol=1e-9) for a, b in zip(row[f"phi_{name}"], want, strict=True)]
        expect(all(close), where, name, "phi is", row[f"phi_{name}"], "not", want)


def check_step(row, number):
    where = f"pref_step row {number} ({row['pair_id']})"
    expect(row["reward_chosen"] > row["reward_rejected"], where, "the chosen side is not better")
    expect(row["chosen"] != row["rejected"], where, "both sides say the same")
    expect(sum(message["role"] == "assistant" for message in row["prompt"]) == row["divergence_turn"], where, "has another history")
    for name in ("chosen", "rejected"):
        expect(len(row[name]) == 1, where, name, "is not one message")
        check_conversation(row["prompt"] + row[name], f"{where} {name}")


def check_across(folder, sft, pairs):
    """Both sides of a pair are rollouts of one task in one environment, with the rewards that the pair states, and no group is in two splits."""
    known = {row["trajectory_id"]: row for row in sft}
    trajectories = folder.parent / "trajectories"
    checked = 0
    expect(len({row["pair_id"] for row in pairs}) == len(pairs), "two pairs have one pair_id")
    for number, row in enumerate(pairs):
        for name in ("chosen", "rejected"):
            where = f"pref_dmpo row {number} {name}"
            rollout = known.get(row[f"trajectory_id_{name}"])
            if rollout is not None:
                # Before the divergence the rejected side has the words of the chosen one.
                own = 0 if name == "chosen" else 2 * row["divergence_turn"]
                messages = (row["prompt"] + row[name])[len(row["prompt"]) + own :]
                whole = rollout["messages"][len(row["prompt"]) + own :]
                expect(whole[: len(messages)] == messages, where, "messages differ from its `sft` row's")
            elif trajectories.is_dir():  # The `sft` filter left it out.
                rollout = from_atif(trajectories / f"{row[f'trajectory_id_{name}']}.json")
            else:
                continue
            for fact in ("task_id", "task_digest", "environment_digest"):
                expect(rollout[fact] == row[fact], where, fact, "differs from its rollout's")
            if row["pair_kind"] != "self_correction" or name == "chosen":
                for fact in ("f2p", "p2p"):
                    expect(rollout[fact] == row[f"{fact}_{name}"], where, fact, "differs from its rollout's")
            checked += 1
    print(f"pref_dmpo: {checked} of {2 * len(pairs)} sides compared with their rollouts")


def check_splits(folder, config):
    """No group of rows is in two splits."""
    groups = {split: set() for split in ("train", "test")}
    for file in folder.joinpath(config).iterdir():
        rows = pq.read_table(file, columns=["split_group"]).to_pylist()
        groups[SHARD.fullmatch(file.name)[1]].update(row["split_group"] for row in rows)
    expect(not groups["train"] & groups["test"], config, "groups in two splits:", groups["train"] & groups["test"])


def from_atif(file):
    facts = json.loads(file.read_text())["extra"]
    return {"task_id": facts["task"], **facts, **{name: facts["rewards"][name] for name in ("pass_ratio", "f2p", "p2p")}}


def check_files(folder, config):
    """Names, schema, metadata, compression and indexes of the shards, as pyarrow sees them."""
    files = sorted(folder.joinpath(config).iterdir())
    expect(files, config, "has no files")
    splits = {}
    for file in files:
        named = SHARD.fullmatch(file.name)
        expect(named, file, "is not a shard")
        splits.setdefault(named[1], []).append(named)
    for named in splits.values():
        for number, shard in enumerate(named):
            expect(shard.groups()[1:] == (f"{number:05}", f"{len(named):05}"), shard[0], "is misnumbered")
    for file in files:
        parquet = pq.ParquetFile(file)
        fields = {field.name: str(field.type).replace(" not null", "") for field in parquet.schema_arrow}
        expect(fields == SCHEMAS[config], file, "has schema", fields)
        nullable = {field.name for field in parquet.schema_arrow if field.nullable}
        expect(nullable == MAY_BE_NULL & set(fields), file, "has nullable columns", nullable)
        metadata = parquet.schema_arrow.metadata or {}
        metadata = {**metadata, **(parquet.metadata.metadata or {})}
        expect(metadata.get(b"termsmith.config") == config.encode(), file, "has metadata", metadata)
        expect(metadata.get(b"termsmith.schema_version") == VERSIONS[config], file, "has another schema version")
        expect(b"huggingface" not in metadata, file, "has a `huggingface` key")
        for group in range(parquet.metadata.num_row_groups):
            for column in range(parquet.metadata.num_columns):
                chunk = parquet.metadata.row_group(group).column(column)
                text = chunk.path_in_schema.endswith((".content", ".role")) or chunk.path_in_schema in JSON_LEAVES
                expect(chunk.compression == "ZSTD", file, chunk.path_in_schema, "is", chunk.compression)
                expect(chunk.has_offset_index, file, chunk.path_in_schema, "has no page index")
                expect(chunk.is_stats_set != text, file, chunk.path_in_schema, "statistics:", chunk.is_stats_set)
    return files


def decoded(row):
    """A row whose JSON texts are values."""
    values = {name: [json.loads(item) if isinstance(item, str) else item for item in row[name] or []] for name in DECODED if name in row}
    return {**row, **{name: None if row[name] is None else value for name, value in values.items()}}


def ordered(row):
    """A row that is equal to others only if the keys of all dictionaries have the same order."""
    return {name: json.dumps(value) if name in DECODED else value for name, value in row.items()}


def with_pyarrow(folder, config):
    return [decoded(row) for row in pq.read_table(folder / config).to_pylist()]


def with_duckdb(folder, config):
    # Its own row order over several files is that of their names.
    table = duckdb.sql(f"SELECT * FROM '{folder / config}/*.parquet'")
    names = table.columns
    return [decoded(dict(zip(names, row, strict=True))) for row in table.fetchall()]


def with_pandas(folder, config):
    """As verl's SFT reader does it."""
    frames = [pandas.read_parquet(file, dtype_backend="pyarrow") for file in sorted((folder / config).iterdir())]
    rows = [row for frame in frames for row in frame.to_dict("records")]
    return [decoded({name: plain(value) for name, value in row.items()}) for row in rows]


def with_datasets(folder, config):
    """As TRL, ms-swift and axolotl do it: by the configs of the dataset card."""
    with tempfile.TemporaryDirectory() as cache:
        loaded = datasets.load_dataset(str(folder), config, cache_dir=cache)
        # The files are read in the order of their names.
        return [row for split in sorted(loaded) for row in loaded[split]]


def plain(value):
    """Arrow and NumPy values as Python's own."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if value is pandas.NA else value


def check_default_config(folder, rows):
    with tempfile.TemporaryDirectory() as cache:
        names = datasets.get_dataset_config_names(str(folder))
        expect(sorted(names) == sorted(SCHEMAS), "the card declares the configs", names)
        if not rows:
            return
        loaded = datasets.load_dataset(str(folder), cache_dir=cache)
        expect("messages" in loaded["train"].column_names, "the default config is not `sft`")


def main():
    folder = Path(sys.argv[1]).resolve()
    datasets.disable_progress_bars()
    for gamma, turns, t, golden in GOLDEN:
        expect(abs(phi(gamma, turns, t) - golden) <= 5e-5, "this script's own φ is wrong at", gamma, turns, t)

    rows = {}
    for config in SCHEMAS:
        files = check_files(folder, config)
        check_splits(folder, config)
        rows[config] = with_pyarrow(folder, config)
        readers = [with_duckdb, with_pandas, with_datasets]
        if not rows[config]:
            readers.remove(with_datasets)  # It refuses a split without rows, whatever its files say.
        for reader in readers:
            seen = reader(folder, config)
            expect(len(seen) == len(rows[config]), reader.__name__, config, "sees", len(seen), "rows")
            for number, (one, other) in enumerate(zip(seen, rows[config], strict=True)):
                expect(ordered(one) == ordered(other), reader.__name__, config, "sees another row", number)
        check = {"sft": check_sft, "sft_tools": check_sft_tools, "pref_dmpo": check_pair, "pref_step": check_step}[config]
        for number, row in enumerate(rows[config]):
            check(row, number)
        names = ", ".join(reader.__name__.removeprefix("with_") for reader in [with_pyarrow, *readers])
        print(f"{config}: {len(rows[config])} rows in {len(files)} files; {names} agree")
    check_across(folder, rows["sft"], rows["pref_dmpo"])
    check_default_config(folder, rows["sft"])
    versions = [f"{module.__name__} {module.__version__}" for module in (pyarrow, duckdb, pandas, datasets)]
    print("read with", ", ".join(versions))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main()
    except AssertionError as wrong:
        sys.exit(f"check_parquet: {wrong}")
