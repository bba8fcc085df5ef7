#!/bin/bash
# Runs every task under the real Harbor: the oracle must score 1 on each, and doing nothing 0, in `reward` and in `f2p` (the share of
# new checks); what worked before works in both (`p2p`).
# Usage: check_harbor.sh HARBOR TASKS [CONCURRENT]
set -euo pipefail
harbor=$1 tasks=$2 concurrent=${3:-2}
jobs=$(mktemp -d)
trap 'rm -rf "$jobs"' EXIT
export HARBOR_TELEMETRY=0

# Harbor enforces `network_mode = "no-network"` by a sidecar image from Docker Hub. Where Docker Hub cannot be reached, Harbor refuses
# such tasks, so copies of them with the public network are run, and the output says so.
if ! timeout 120 docker pull -q alpine:3.23.4 >/dev/null 2>&1; then
    echo "Docker Hub cannot be reached: the tasks run with a public network"
    cp -r "$tasks" "$jobs/tasks"
    tasks=$jobs/tasks
    sed -i 's/^network_mode = "no-network"$/network_mode = "public"/' "$tasks"/*/task.toml
fi

for agent in oracle:1 nop:0; do
    want=${agent#*:} agent=${agent%:*}
    $harbor run -p "$tasks" -a "$agent" -n "$concurrent" -o "$jobs/$agent" >"$jobs/$agent.log" 2>&1 || {
        tail -n 20 "$jobs/$agent.log" >&2
        exit 1
    }
    python3 - "$agent" "$want" "$jobs/$agent" "$tasks" <<'PYTHON'
import json, pathlib, sys

agent, want, jobs, tasks = sys.argv[1], float(sys.argv[2]), pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
expected = {path.parent.name for path in tasks.glob("*/task.toml")}
seen, wrong = set(), []
for path in jobs.glob("*/*/result.json"):
    trial = json.loads(path.read_text())
    name = trial["task_name"].rsplit("/", 1)[-1]
    rewards = (trial.get("verifier_result") or {}).get("rewards") or {}
    seen.add(name)
    if (list(rewards), *rewards.values()) != (["reward", "f2p", "p2p"], want, want, 1.0):
        wrong.append(f"{name}: {rewards or trial.get('exception_info')}")
wrong += [f"{name}: not run" for name in sorted(expected - seen)]
print(f"{agent}: {len(seen) - len(wrong)} of {len(expected)} tasks score {want:.0f}")
print("\n".join(wrong))
sys.exit(bool(wrong) or not expected)
PYTHON
done
