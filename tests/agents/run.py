#!/usr/bin/env python3
"""Runs real agents on tasks, with a scripted endpoint, and checks what was recorded.

Usage: run.py TERMSMITH OUT [--agents NAME,NAME] [--modes plain,sub,killed] [--harbor-python PYTHON]
              [--template FILE] TASK [TASK ...]
Each agent runs on every TASK in each mode:
- plain: as it is.
- sub: the endpoint starts a sub-agent where the agent has a tool for that.
- killed: termsmith is killed after three replies, and started again.
An agent that is not installed yet is installed by `termsmith agent add`. PYTHON is an interpreter
that can import `harbor`; its validator then checks each ATIF document.

Prints a line for each agent and mode, and exits with 1 if one has a fault. Needs pyarrow.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
AGENTS = "claude-code,codex,opencode,mini-swe-agent,openhands,aider,qwen-code"
# Longest time of one mode: the agents need seconds, a busy machine ten times as long.
SECONDS = 1800
REPLIES_BEFORE_KILL = 3
VALIDATE = """
import sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for path in sys.argv[1:]:
    validator = TrajectoryValidator()
    if not validator.validate(path):
        print(path, validator.errors)
        sys.exit(1)
"""


def endpoint(log, tasks, mode):
    env = os.environ | ({"SUBAGENT": "1"} if mode == "sub" else {})
    process = subprocess.Popen([sys.executable, HERE / "endpoint.py", log, *tasks], env=env,
                               stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def replies(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def rollout(args, out, port, agent):
    command = [args.termsmith, "rollout", *args.tasks, "--out", out, "--agent", agent, "--model", "player",
               "--base-url", f"http://127.0.0.1:{port}/v1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    output, _ = process.communicate(timeout=SECONDS)
    return process.returncode, output


def tried(args, agent, mode):
    """The faults of one agent in one mode."""
    out = args.out / f"{agent}-{mode}"
    out.mkdir(parents=True, exist_ok=True)
    log = out / "endpoint.jsonl"
    served, port = endpoint(log, args.tasks, mode)
    try:
        process = rollout(args, out / "run", port, agent)
        if mode == "killed":
            while process.poll() is None and replies(log) < REPLIES_BEFORE_KILL:
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            process.wait()
            # Replies that are under way are logged before this line.
            time.sleep(1)
            with open(log, "a") as lines:
                lines.write('{"killed": true}\n')
            process = rollout(args, out / "run", port, agent)
        status, output = finish(process)
    finally:
        served.kill()
    if status != 0:
        return [f"rollout ended with {status}:\n{output[-3000:]}"]
    exported = subprocess.run([args.termsmith, "export", "--out", out / "run", "--sft", "all"],
                              capture_output=True, text=True)
    if exported.returncode != 0:
        return [f"export ended with {exported.returncode}:\n{exported.stderr[-3000:]}"]
    checks = [[sys.executable, HERE / "check.py", log, out / "run", *args.template]]
    if args.harbor_python:
        documents = sorted((out / "run" / "trajectories").glob("*.json"))
        checks.append([args.harbor_python, "-c", VALIDATE, *documents])
    ran = [subprocess.run(check, capture_output=True, text=True) for check in checks]
    print(f"   {ran[0].stdout.splitlines()[-1]}" if ran[0].stdout else "", flush=True)
    return [f"{done.stdout}{done.stderr}" for done in ran if done.returncode != 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("termsmith")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--agents", default=AGENTS)
    parser.add_argument("--modes", default="plain,sub,killed")
    parser.add_argument("--harbor-python")
    parser.add_argument("--template", action="append", default=[])
    args = parser.parse_args()
    failed = False
    for agent in args.agents.split(","):
        added = subprocess.run([args.termsmith, "agent", "add", agent], capture_output=True, text=True)
        if added.returncode != 0:
            print(f"{agent}: cannot be installed: {added.stderr.strip()[-2000:]}", flush=True)
            failed = True
            continue
        for mode in args.modes.split(","):
            started = time.time()
            faults = tried(args, agent, mode)
            failed |= bool(faults)
            print(f"{agent} {mode}: {'ok' if not faults else 'FAULTS'} in {time.time() - started:.0f} s", flush=True)
            for fault in faults:
                print("   " + fault.replace("\n", "\n   "), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
