#!/usr/bin/env python3
"""Compares the first request of the scaffold `terminus` with that of the real Harbor's terminus-2, for the same task directory.

A fake endpoint records the first request of each and answers that the task is complete. The only difference that is allowed is the
host name in the prompt of the shell, which is the container's id.

Usage: first_request.py HARBOR TERMSMITH TASK [TASK ...]
Python 3.11 or later, standard library only.
"""

import difflib
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

DONE = json.dumps({"analysis": "Nothing to do.", "plan": "", "commands": [], "task_complete": True})
HOST = re.compile(r"root@[\w.-]+:")
# A run that hangs must not hang the suite.
SECONDS = 900


class Endpoint(http.server.BaseHTTPRequestHandler):
    requests = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body)
        message = {"role": "assistant", "content": DONE}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
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


def first(run):
    """The messages of the first request that `run` leads to."""
    Endpoint.requests.clear()
    done = run()
    if not Endpoint.requests:
        sys.exit(f"no request was made:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    messages = Endpoint.requests[0]["messages"]
    texts = [(message["role"], flat(message["content"])) for message in messages]
    return [(role, HOST.sub("root@HOST:", text)) for role, text in texts]


def flat(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def main():
    harbor, termsmith = shlex.split(sys.argv[1]), sys.argv[2]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    env = {**os.environ, "OPENAI_API_KEY": "none", "HARBOR_TELEMETRY": "0"}
    options = {"env": env, "capture_output": True, "text": True, "timeout": SECONDS, "check": False}
    differences = 0
    for task in map(pathlib.Path, sys.argv[3:]):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            # Where Docker Hub cannot be reached, Harbor cannot run tasks without network.
            public = folder / "tasks" / task.name
            shutil.copytree(task, public)
            config = public / "task.toml"
            config.write_text(config.read_text().replace('network_mode = "no-network"', 'network_mode = "public"'))
            theirs = first(lambda: subprocess.run(
                [*harbor, "run", "-p", public.parent, "-a", "terminus-2", "-m", "openai/fake", "-n", "1",
                 "--ak", f"api_base={url}", "-o", folder / "jobs"], **options))
            settings = folder / "termsmith.toml"
            settings.write_text(f'version = 1\n[endpoints.e]\nbase_url = "{url}"\n[roles.expert]\nendpoint = "e"\nmodel = "fake"\nmax_tokens = 1000\n')
            ours = first(lambda: subprocess.run(
                [termsmith, "rollout", task, "--scaffold", "terminus", "--early-wake", "--attempts", "1",
                 "--settings", settings, "--out", folder / "out"], **options))
        same = ours == theirs
        differences += not same
        print(f"{task.name}: {'equal' if same else 'DIFFERENT'}, {sum(len(text) for _, text in ours)} characters")
        if not same:
            lines = [json.dumps(messages, indent=1).replace("\\n", "\n").splitlines() for messages in (theirs, ours)]
            print("\n".join(difflib.unified_diff(*lines, "harbor", "termsmith", lineterm="")))
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
