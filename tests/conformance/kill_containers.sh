#!/bin/bash
# Reference rollouts while somebody else kills a container of the run every 1.5 s: no killed container may become a stored result.
#
#   tests/conformance/kill_containers.sh TERMSMITH OUT [ATTEMPTS [TASKS...]]
#
# TERMSMITH is the binary, OUT a run folder whose tasks/ are solved (`termsmith run --count 4 --out OUT`); rollouts go to OUT-rollouts.
# ATTEMPTS (50) of each task run once while containers are killed, and their stored outcomes are counted; then the same command runs
# without kills, up to 5 times, until it ends with 0. Exit status 0: a container was killed, all rollouts are stored as passes, and none
# was ever stored as anything else (fail, verifier_error, ...). Exit status 1 otherwise; 2 if the arguments are wrong.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
binary=$(realpath "$1")
out=$2
attempts=${3:-50}
shift $(($# < 3 ? $# : 3))
tasks=("$@")
[ $# -gt 0 ] || tasks=("$out"/tasks/*/)
rollouts=$out-rollouts
every=${KILL_EVERY:-1.5}
concurrency=${CONCURRENCY:-4}
# Calls without kills before this gives up.
max_calls=5

command=("$binary" rollout "${tasks[@]}" --scaffold oracle -k "$attempts" -j "$concurrency" --out "$rollouts")

# Kills one running container of the process $1 at a time, a random one, for as long as that process lives.
kill_some() {
    local victim
    while kill -0 "$1" 2>/dev/null; do
        sleep "$every"
        victim=$(docker ps --filter label=termsmith.owner --format '{{.ID}} {{.Label "termsmith.owner"}}' |
            awk -v pid="$1" '{ split($2, owner, ":"); if (owner[3] == pid) print $1 }' | shuf -n 1)
        if [ -n "$victim" ] && docker kill "$victim" >/dev/null 2>&1; then
            echo "$victim" >>"$rollouts.killed"
        fi
    done
}

# Stored outcomes, counted: a line "COUNT OUTCOME" each.
outcomes() {
    python3 - "$rollouts" <<'EOF'
import collections, json, pathlib, sys

records = pathlib.Path(sys.argv[1], "store/rollout").glob("*/*.json")
counts = collections.Counter(json.loads(record.read_text())["value"]["verdict"]["outcome"] for record in records)
for outcome, count in counts.items():
    print(f"{count:7} {outcome}")
EOF
}

rm -rf "$rollouts" "$rollouts.killed"
: >"$rollouts.killed"
began=$SECONDS
"${command[@]}" >"$rollouts.log" 2>&1 &
pid=$!
kill_some "$pid" &
killer=$!
status=0
wait "$pid" || status=$?
wait "$killer" || true
killed=$(wc -l <"$rollouts.killed")
echo "with kills: exit status $status after $((SECONDS - began)) s, $killed containers killed; stored:"
outcomes
wrong=$(outcomes | awk '$2 != "pass" { sum += $1 } END { print sum + 0 }')

calls=0
while [ "$status" -ne 0 ] && [ "$calls" -lt "$max_calls" ]; do
    calls=$((calls + 1))
    status=0
    "${command[@]}" >>"$rollouts.log" 2>&1 || status=$?
    echo "call $calls without kills: exit status $status; stored:"
    outcomes
done
passes=$(outcomes | awk '$2 == "pass" { print $1 }')
passes=${passes:-0}
want=$((attempts * ${#tasks[@]}))
echo "$passes of $want passes, $wrong stored as something else while containers were killed"
[ "$killed" -gt 0 ] && [ "$passes" -eq "$want" ] && [ "$wrong" -eq 0 ] && [ "$status" -eq 0 ]
