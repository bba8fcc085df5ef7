# differs: one interactive rebase with a list of its own (pick, fixup, exec); the exec step words and splits each commit in place; archive/untidy is made last
cat > plan.py <<'EOF'
"""plan.py TODO: writes the whole list of the rebase."""

import subprocess
import sys


def out(*args):
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True).stdout


groups = {}
for commit in out("rev-list", "--reverse", "main..exports").split():
    subject = out("log", "-1", "--format=%s", commit).strip()
    if subject.startswith("fixup! "):
        groups[subject.replace("fixup! ", "")].append(commit)
    elif subject.startswith('Revert "'):
        del groups[subject[len('Revert "'):-1]]
    else:
        groups[subject] = [commit]
with open(sys.argv[1], "w") as todo:
    for first, *others in groups.values():
        print("pick", first, file=todo)
        for other in others:
            print("fixup", other, file=todo)
        print("exec bash /solution/word.sh", first, file=todo)
EOF
cat > word.sh <<'EOF'
#!/bin/bash
# word.sh ORIGINAL: gives HEAD its final message; splits it if it touches both folders.
set -euo pipefail
message=$(git log -1 --format=%B "$1")
[[ $message == *$'\n\nTicket: EXP-214' ]] || message+=$'\n\nTicket: EXP-214'
if [ "$(git diff --name-only HEAD^ HEAD | cut -d/ -f1 | sort -u | grep -cxE 'src|docs')" = 2 ]; then
    whole=$(git rev-parse HEAD)
    git reset -q --hard HEAD^
    git diff --binary HEAD "$whole" -- src | git apply --index
    git commit -q -C "$1"
    git commit -q --amend --cleanup=verbatim -m "$message"
    git diff --binary HEAD "$whole" | git apply --index
    git commit -q -C "$1"
    message="docs: $message"
fi
git commit -q --amend --cleanup=verbatim -m "$message"
EOF
cat > solve.sh <<'EOF'
#!/bin/bash
set -euo pipefail
cd /app/repo
old=$(git rev-parse exports)
GIT_SEQUENCE_EDITOR="python3 /solution/plan.py" GIT_EDITOR=true git rebase -q -i main
git update-ref refs/heads/archive/untidy "$old"
EOF
