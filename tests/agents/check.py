#!/usr/bin/env python3
"""Compares what an endpoint saw and said with what termsmith recorded and exported.

Usage: check.py LOG RUN [TEMPLATE ...]
LOG is written by `endpoint.py`, RUN is the folder of the run. A TEMPLATE is a chat template (Jinja)
of a model family; without one, a rendering in the style of Qwen is used.

- Each reply of the log is in the records exactly once, and in order within its thread. A reply
  before a kill may be missing: a started agent may ask something else, e.g. since an output has the
  time, and the record has what the last process saw.
- Each row of `sft_tools` renders to the same text as the request that the endpoint saw and its
  reply, tools included. The request is the one that led to the row's last message. Reasoning is
  compared in the last message alone: a row has it in each turn, but most agents, and termsmith's
  own request unless `return_reasoning` is set, leave it out of the history.
- Each thread with tools has rows.

Prints one line for each fault, and exits with 1 if there is one. Needs pyarrow; templates also need
transformers.
"""

import collections
import json
import pathlib
import re
import sys

import pyarrow.parquet as pq

THINK = re.compile(r"<think>\n(.*?)\n</think>\n\n(.*)", re.S)
MARK = re.compile(r"\[reply ([0-9a-f]{8})-(\d+)\]")


def marks(value):
    return [f"{mark}-{number}" for mark, number in MARK.findall(json.dumps(value))]


def plain(messages, tools):
    """A rendering that keeps everything a chat template could use."""
    lines = [json.dumps(tools)]
    for message in messages:
        lines.append(f"<{message['role']}>{message.get('content') or ''}")
        if message["role"] == "assistant":
            lines.append(f"<think>{message.get('reasoning_content') or ''}")
        for call in message.get("tool_calls") or []:
            lines.append(f"<call>{call['function']['name']} {json.dumps(call['function']['arguments'])}")
    return "\n".join(lines)


def templated(template):
    from transformers.utils.chat_template_utils import render_jinja_template

    def render(messages, tools):
        rendered, _ = render_jinja_template([messages], tools=tools or None, chat_template=template)
        return rendered[0]

    return render


def as_sent(messages):
    """Messages with arguments as objects, which is what templates take, and without the reasoning
    of earlier turns."""
    messages = json.loads(json.dumps(messages))
    for message in messages[:-1]:
        message.pop("reasoning_content", None)
    for message in messages:
        for call in message.get("tool_calls") or []:
            if isinstance(call["function"]["arguments"], str):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


def threads_of(record):
    """The turns of each thread of a stored rollout: the main one first."""
    yield "main", record["turns"]
    for number, thread in enumerate(record.get("threads") or []):
        yield f"{thread['kind']} {number}", thread["turns"]


def recorded(run):
    """The marks of each thread of each rollout."""
    for path in sorted(pathlib.Path(run, "store", "rollout").rglob("*.json")):
        stored = json.loads(path.read_text())
        record = stored["value"]
        for name, turns in threads_of(record):
            yield path.stem[:8], name, [(turn, mark) for turn in turns for mark in marks(turn["content"])]


def faults_of_records(log, run):
    count = {}
    for rollout, name, found in recorded(run):
        for _, mark in found:
            count.setdefault(mark, []).append(f"{rollout} {name}")
        numbers = [int(mark.split("-")[1]) for _, mark in found]
        # A compaction begins a new segment, in which the endpoint counts from 0 again.
        if name == "main" and numbers != sorted(numbers):
            yield f"{rollout} {name}: the replies are out of order: {numbers}"
    # Two tasks may ask the same, e.g. by the same prompt of a sub-agent.
    said = collections.Counter(mark for entry in log for mark in marks(entry["reply"]["content"]))
    lost = {mark for entry in log if entry.get("before_kill") for mark in marks(entry["reply"]["content"])}
    for mark, times in said.items():
        places = count.get(mark, [])
        if len(places) > times or (len(places) < times and mark not in lost):
            yield f"reply {mark} was sent {times} times, and recorded {len(places)} times: {places}"


def with_reasoning(message):
    """The message with its reasoning in a field of its own. `sft` has it within the text."""
    found = THINK.match(message.get("content") or "") if message["role"] == "assistant" else None
    return message | {"reasoning_content": found[1], "content": found[2]} if found else message


def rows(run):
    """The conversations with functions, and those of agents without any, e.g. aider."""
    paths = [path for config in ("sft_tools", "sft") for path in pathlib.Path(run, "data", config).glob("*.parquet")]
    for path in sorted(paths):
        for row in pq.read_table(path).to_pylist():
            decode = lambda value: json.loads(value) if isinstance(value, str) else value
            yield [with_reasoning(decode(message)) for message in row["messages"]], [decode(tool) for tool in row.get("tools") or []], row


def faults_of_rows(log, run, render):
    by_mark = {mark: entry for entry in log for mark in marks(entry["reply"]["content"])}
    seen = 0
    for messages, tools, row in rows(run):
        seen += 1
        where = f"row {row['trajectory_id']} {row.get('thread')} {row['segment']}"
        last = marks(messages[-1]["content"]) if messages[-1]["role"] == "assistant" else []
        if len(last) != 1 or last[0] not in by_mark:
            yield f"{where}: the last message is no reply of the endpoint: {str(messages[-1])[:200]}"
            continue
        entry = by_mark[last[0]]
        request = entry["request"]
        expected = render(as_sent([*request["messages"], entry["reply"]]), request.get("tools") or [])
        found = render(as_sent(messages), tools)
        if expected != found:
            at = next((at for at, (a, b) in enumerate(zip(expected, found)) if a != b), min(len(expected), len(found)))
            yield (f"{where}: differs from the request at character {at}:\n"
                   f"  request {expected[max(0, at - 80):at + 160]!r}\n  row     {found[max(0, at - 80):at + 160]!r}")
    if not seen:
        yield "there are no rows"


def passed(run):
    """Outcomes of the rollouts, for the reader: the endpoint knows the solution, so they should pass."""
    records = pathlib.Path(run, "store", "rollout").rglob("*.json")
    return collections.Counter(json.loads(path.read_text())["value"]["verdict"]["outcome"] for path in records)


def main():
    log_path, run, *templates = sys.argv[1:]
    log = [json.loads(line) for line in pathlib.Path(log_path).read_text().splitlines()]
    kills = [at for at, entry in enumerate(log) if "killed" in entry]
    for entry in log[:max(kills, default=0)]:
        entry["before_kill"] = True
    log = [entry for entry in log if "killed" not in entry]
    faults = list(faults_of_records(log, run))
    renders = {"plain": plain} | {path: templated(pathlib.Path(path).read_text()) for path in templates}
    for name, render in renders.items():
        faults += [f"{name}: {fault}" for fault in faults_of_rows(log, run, render)]
    for fault in faults:
        print(fault)
    if not log:
        print("the endpoint was never asked")
    print(f"{len(log)} replies, {len(faults)} faults, outcomes {dict(passed(run))}")
    sys.exit(1 if faults or not log else 0)


if __name__ == "__main__":
    main()
