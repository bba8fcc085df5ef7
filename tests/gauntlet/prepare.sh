#!/bin/bash
# Copies tasks of the corpus to FOLDER, and gives those of our own format (room-*) the verifier of
# templates/verifier. The corpus itself does not hold a copy of it for each task.
# usage: tests/gauntlet/prepare.sh FOLDER [TASK…]; without a TASK it copies all.
set -euo pipefail
corpus=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
folder=$1
shift
[ $# -gt 0 ] || set -- $(cd "$corpus" && ls -d */)
mkdir -p "$folder"
for task in "${@%/}"; do
    cp -a "$corpus/$task" "$folder/"
    case $task in
        room-*) cp "$corpus"/../../templates/verifier/*.py "$folder/$task/tests/" ;;
    esac
done
