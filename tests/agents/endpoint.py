#!/usr/bin/env python3
"""A model endpoint (OpenAI chat completions) that plays a solver for any agent program.

The reply follows from the request alone: the number of earlier assistant messages with calls, and
the names of the tools. So an agent that is started again gets the same replies. Each reply has a
unique mark, e.g. `[reply 1b2c-3]`, by which `check.py` finds it in the recorded trajectories.

Usage: endpoint.py LOG TASK [TASK ...]     prints its port
LOG gets one line of JSON for each call: the request, the reply, and the headers.
TASK is a task directory. The solver runs its solution where the request has its instruction.
Environment: SUBAGENT=1 starts a sub-agent where the agent has a tool for that.
Python 3.11 or later, standard library only.
"""

import base64
import hashlib
import http.server
import io
import json
import os
import pathlib
import sys
import tarfile
import threading
import time

# Names of the tools that run commands, write files, and start sub-agents, in the agents we know.
SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command",
          "terminal", "execute_bash")
WRITERS = ("Write", "write", "write_file", "file_editor", "str_replace_editor")
SPAWNERS = ("Task", "Agent", "task", "agent", "spawn_agent")
FINISHERS = ("finish", "attempt_completion")
# Marks the prompt of a sub-agent.
ERRAND = "ERRAND: count the lines of /etc/hosts"
NOTE = "/tmp/agent-note.txt"
STEPS = "/tmp/steps/"


def text_of(content):
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def solution_of(task):
    """One command that unpacks a task's solution and runs it. It is moved out of `/solution`, since
    termsmith takes a command that reads that folder for an exploit."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for path in sorted((task / "solution").rglob("*")):
            if path.is_file():
                content = path.read_bytes().replace(b"/solution/", STEPS.encode())
                entry = tarfile.TarInfo(str(path.relative_to(task / "solution")))
                entry.size, entry.mode = len(content), 0o755
                tar.addfile(entry, io.BytesIO(content))
    packed = base64.b64encode(archive.getvalue()).decode()
    return f"mkdir -p {STEPS} && echo {packed} | base64 -d | tar -xz -C {STEPS} && bash {STEPS}solve.sh"


class Solver:
    def __init__(self, tasks):
        self.solutions = []
        for task in tasks:
            instruction = (task / "instruction.md").read_text()
            lines = [line.strip() for line in instruction.splitlines() if len(line.strip()) > 40]
            self.solutions.append((lines[-1], solution_of(task)))

    def command(self, prompt):
        return next((run for line, run in self.solutions if line in prompt), "echo 'no such task'")

    def plan(self, tools, prompt):
        """The steps of a conversation: text, tool and arguments, or several of these at once."""
        shell = next((name for name in SHELLS if name in tools), None)
        if shell is None:
            return []
        if ERRAND in prompt:
            return [("Counting.", [(shell, "wc -l < /etc/hosts")])]
        steps = [("I will look around first.", [(shell, "pwd; ls -la | head -20")])]
        spawner = next((name for name in SPAWNERS if name in tools), None)
        if spawner and os.environ.get("SUBAGENT"):
            steps.append(("A helper counts.", [(spawner, None)]))
        writer = next((name for name in WRITERS if name in tools), None)
        if writer:
            steps.append(("A note.", [(writer, None)]))
        steps.append(("Now the work.", [(shell, self.command(prompt))]))
        steps.append(("Two at once.", [(shell, "ls | wc -l"), (shell, "date +%Y")]))
        return steps

    def answer(self, request):
        functions = [tool["function"] for tool in request.get("tools") or [] if "function" in tool]
        tools = {function["name"]: function.get("parameters") or {} for function in functions}
        messages = request.get("messages", [])
        done = sum(message["role"] == "assistant" and bool(message.get("tool_calls")) for message in messages)
        prompt = "\n".join(text_of(message["content"]) for message in messages if message["role"] in ("user", "system"))
        mark = hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:8]
        steps = self.plan(tools, prompt)
        if done < len(steps):
            text, calls = steps[done]
            calls = [(name, arguments(name, command, tools[name])) for name, command in calls]
        else:
            finisher = next((name for name in FINISHERS if name in tools), None)
            text = "Done: the work is complete."
            calls = [(finisher, {"message": text})] if finisher and steps else []
        message = {"role": "assistant", "content": f"{text} [reply {mark}-{done}]",
                   "reasoning_content": f"Step {done}: {text}"}
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{mark}_{at}", "type": "function",
                 "function": {"name": name, "arguments": json.dumps(values)}}
                for at, (name, values) in enumerate(calls)]
        return message


def arguments(tool, command, schema):
    """Arguments that a tool's schema accepts."""
    properties = schema.get("properties") or {}
    values = {}
    if tool in SHELLS:
        key = "cmd" if "cmd" in properties else "command"
        as_list = (properties.get(key) or {}).get("type") == "array"
        values[key] = ["bash", "-lc", command] if as_list else command
    elif tool in WRITERS:
        if "command" in properties:
            values["command"] = "create"
        path = next((key for key in ("file_path", "filePath", "path", "absolute_path") if key in properties), "path")
        values[path] = NOTE
        values["content" if "content" in properties else "file_text"] = "a note\nof two lines\n"
    elif "message" in properties and "prompt" not in properties:
        values["message"] = ERRAND
    for key in schema.get("required") or []:
        if key in values:
            continue
        form = properties.get(key) or {}
        if key == "prompt":
            values[key] = ERRAND
        elif key in ("subagent_type", "agent_type"):
            values[key] = "general-purpose" if tool in ("Task", "Agent") else "general"
        elif key == "security_risk":
            values[key] = "LOW"
        elif "enum" in form:
            values[key] = form["enum"][0]
        else:
            values[key] = {"boolean": False, "number": 1, "integer": 1}.get(form.get("type"), "a short note")
    return values


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    solver, log, lock = None, None, threading.Lock()

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # The client was killed.

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        try:
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            pass  # The client was killed.

    def do_GET(self):
        models = {"object": "list", "data": [{"id": "player", "object": "model", "owned_by": "tests"}]}
        self.send(200, "application/json", json.dumps(models).encode())

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = self.solver.answer(request)
        with self.lock, open(self.log, "a") as log:
            log.write(json.dumps({"at": time.time(), "request": request, "reply": message}) + "\n")
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": len(json.dumps(request)) // 4, "completion_tokens": 30}
        usage["total_tokens"] = sum(usage.values())
        reply = {"id": "reply", "object": "chat.completion", "created": 0, "model": "player", "usage": usage,
                 "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        self.send(200, "application/json", json.dumps(reply).encode())


def main():
    log, *tasks = sys.argv[1:]
    Handler.solver, Handler.log = Solver([pathlib.Path(task) for task in tasks]), log
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
