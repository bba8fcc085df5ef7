#!/usr/bin/env python3
"""Renders rows of `sft_tools` with chat templates, and compares them with the requests that the model was sent.

    python3 -m venv /tmp/readers && /tmp/readers/bin/pip install -r tests/readers/requirements.txt
    /tmp/readers/bin/pip install --no-deps trl==1.16.0
    /tmp/readers/bin/python tests/readers/check_tools.py target/demo/termsmith out/demo/tasks/TASK

A fake endpoint answers two rollouts of the scaffold `bash`. In the first, each message has one call. The second has reasoning,
two calls at once, and malformed arguments. The rollouts are exported and read by `datasets`. Then each template in TRL's package
renders the row, and the last request with its reply. Both texts must be equal, with the functions. The guide's mask of the loss is applied too.

Exits with 0 if they are; otherwise it prints what differs and exits with 1.
"""

import difflib
import http.server
import importlib.util
import itertools
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import datasets
from check_mask import NO_LOSS, shown_function, tokenizer_of
from transformers.utils.chat_template_utils import render_jinja_template

# A run that hangs must not hang the suite.
SECONDS = 900
TRL = "pip install --no-deps trl==1.16.0"


def call(number, arguments):
    return {"id": f"call_{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}


# Keys in no alphabetical order, and no spaces.
UNSORTED = '{"timeout":20,"command":"ls -la"}'
SPACED = '{ "command" : "id -u" }'
DONE = "The work is done."
# Replies by the name of the model.
REPLIES = {
    "one call a message": [
        {"content": "", "tool_calls": [call(1, UNSORTED)]},
        {"content": "", "tool_calls": [call(2, SPACED)]},
        {"content": DONE},
    ],
    "two calls and reasoning": [
        {"content": "I look.", "reasoning_content": "What is there?", "tool_calls": [call(1, UNSORTED)]},
        {
            "content": "",
            "reasoning_content": "Two questions.",
            "tool_calls": [call(2, json.dumps({"command": "printf 'é🦀 \"<b>\"\\n'\npwd"})), call(3, SPACED)],
        },
        {"content": "Again.", "tool_calls": [call(4, '{"command": "ls')]},
        {"content": DONE, "reasoning_content": "Enough."},
    ],
}
FLAGS = {"one call a message": [True, True, True], "two calls and reasoning": [True, True, False, True]}
SAID = ["ls -la", "id -u", DONE]
REASONING = "What is there?"


class Endpoint(http.server.BaseHTTPRequestHandler):
    log = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = sum(message["role"] == "assistant" for message in request["messages"])
        message = {"role": "assistant", **REPLIES[request["model"]][said]}
        self.log.append((request, message))
        finish = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "fake", "choices": [choice], "usage": usage}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def rollout(termsmith, task, port, model, folder):
    """Runs and exports a rollout. Returns its row, its last request, and the reply to it."""
    settings = folder / "termsmith.toml"
    settings.write_text(
        f'version = 1\n[endpoints.e]\nbase_url = "http://127.0.0.1:{port}/v1"\nreturn_reasoning = true\n'
        f'[roles.expert]\nendpoint = "e"\nmodel = "{model}"\nmax_tokens = 1000\n'
    )
    steps = (
        ["rollout", task, "--scaffold", "bash", "--attempts", "1", "--settings", settings, "--out", folder / "out"],
        ["export", "--sft", "all", "--out", folder / "out"],
    )
    for step in steps:
        done = subprocess.run(
            [termsmith, *step], env=os.environ, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            sys.exit(f"`termsmith {step[0]}` ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    rows = datasets.load_dataset(str(folder / "out" / "data"), "sft_tools", split="train", cache_dir=str(folder / "cache"))
    return rows[0], *Endpoint.log[-1]


def as_served(message):
    """A message of a request as servers give it to a template: arguments are objects, and a missing text is empty."""
    message = {**message, "content": message["content"] or ""}
    if "tool_calls" in message:
        message["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    return message


def sent_messages(request, reply):
    return [as_served(message) for message in [*request["messages"], reply]]


def without_flags(messages):
    return [{key: value for key, value in message.items() if key != "train"} for message in messages]


def canonical(messages):
    """Messages as JSON, with sorted keys. The keys of arguments keep their order: it is the model's."""
    lines = []
    for message in messages:
        calls = [(call["id"], call["type"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])]
        lines.append(json.dumps({**dict(sorted(message.items())), **({"tool_calls": calls} if calls else {})}, ensure_ascii=False))
    return lines


def render(template, messages, tools):
    """What the template makes of a conversation, or the error by which it refuses it."""
    try:
        tokens = {"bos_token": "<s>", "eos_token": "</s>"}
        rendered, _ = render_jinja_template(conversations=[messages], tools=tools, chat_template=template, **tokens)
        return rendered[0]
    except Exception as error:  # A template may raise anything.
        return error


def templates():
    package = importlib.util.find_spec("trl")
    if package is None:
        sys.exit(f"check_tools: the templates of TRL are missing: {TRL}")
    return sorted(Path(package.submodule_search_locations[0], "chat_templates").glob("*.jinja"))


def compare(row, request, reply, said):
    """Compares a row with a request and its reply. Returns what each template that can render them makes of them, and why others
    cannot."""
    sent, written = sent_messages(request, reply), without_flags(row["messages"])
    if canonical(sent) != canonical(written):
        lines = difflib.unified_diff(canonical(sent), canonical(written), "request and reply", "row", lineterm="")
        sys.exit("check_tools: the messages differ:\n" + "\n".join(lines))
    if json.dumps(request.get("tools")) != json.dumps(row["tools"]):
        sys.exit(f"check_tools: the functions differ:\n{request.get('tools')}\n{row['tools']}")
    able, unable = {}, {}
    for path in templates():
        template = path.read_text()
        ours, theirs = render(template, row["messages"], row["tools"]), render(template, sent, request["tools"])
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            unable[path.stem] = f"raises {str(ours) or type(ours).__name__}"
        elif isinstance(ours, Exception) or isinstance(theirs, Exception) or ours != theirs:
            sys.exit(f"check_tools: {path.name} renders the row in another way:\n{ours}\n--- not\n{theirs}")
        elif lost := [text for text in [*said, row["tools"][0]["function"]["description"].split("\n")[0]] if text not in ours]:
            unable[path.stem] = f"leaves out {lost[0]!r}"
        else:
            able[path.stem] = ours
    return able, unable


def check_mask(row):
    """The guide's labels are the messages whose flag is true, as Qwen3's template writes them."""
    tokenizer = tokenizer_of([row])
    tokenizer.chat_template = next(path for path in templates() if path.stem == "qwen3_training").read_text()
    tokens, labels = shown_function("tool_tokens_and_labels")(row, tokenizer)
    if tokenizer.decode(tokens) != tokenizer.apply_chat_template(row["messages"], tools=row["tools"], tokenize=False):
        sys.exit("check_tools: the tokens are not those of the conversation")
    runs = [list(run) for learnt, run in itertools.groupby(labels, lambda label: label != NO_LOSS) if learnt]
    learnt = [message for message in row["messages"] if message.get("train")]
    if len(runs) != len(learnt):
        sys.exit(f"check_tools: {len(runs)} messages have labels, not {len(learnt)}")
    for text, message in zip(map(tokenizer.decode, runs), learnt, strict=True):
        calls = [call["function"]["arguments"] for call in message.get("tool_calls", [])]
        parts = [message["content"], *(json.dumps(arguments, ensure_ascii=False) for arguments in calls)]
        if not all(part in text for part in parts) or text.count("<|im_end|>") != 1:
            sys.exit(f"check_tools: the labels of {parts} are {text!r}")


def main(termsmith, task):
    logging.disable(logging.WARNING)
    datasets.disable_progress_bars()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for model, flags in FLAGS.items():
        with tempfile.TemporaryDirectory() as folder:
            row, request, reply = rollout(termsmith, task, server.server_port, model, Path(folder))
        if row["train"] != flags:
            sys.exit(f"check_tools: the flags are {row['train']}, not {flags}")
        able, unable = compare(row, request, reply, SAID)
        print(f"{model}: {len(able)} templates render the row as the request and its reply: {', '.join(able)}")
        check_mask(row)
        if "reasoning_content" in reply:
            silent = [name for name, text in able.items() if REASONING not in text]
            print(f"  of these without reasoning: {', '.join(silent)}")
        for name, why in unable.items():
            print(f"  cannot: {name}: {why[:150]}")
        if not able:
            sys.exit("check_tools: no template renders the row")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
