# differs: no rebase and no cherry-pick; Python groups the commits and builds every new one by git apply --cached, write-tree and commit-tree, with another committer
rm plan.py
cat > tidy.py <<'EOF'
"""Builds the new history of `exports` commit by commit, in an index of its own."""

import os
import subprocess
import tempfile

REPO = "/app/repo"
TICKET = "\n\nTicket: EXP-214"
index = os.path.join(tempfile.mkdtemp(), "index")
base_env = dict(
    os.environ,
    GIT_INDEX_FILE=index,
    GIT_COMMITTER_NAME="Tidier",
    GIT_COMMITTER_EMAIL="tidier@example.org",
)


def git(*args, given=None, env=base_env):
    return subprocess.run(["git", "-C", REPO, *args], input=given, env=env, check=True, stdout=subprocess.PIPE).stdout


def line(*args, **more):
    return git(*args, **more).decode().strip()


old = line("rev-parse", "exports")
main = line("rev-parse", "main")
groups = []  # [subject, [commits]], the first commit gives the message
for commit in line("rev-list", "--reverse", f"{main}..{old}").split():
    subject = line("log", "-1", "--format=%s", commit)
    target = subject
    while target.startswith("fixup! "):
        target = target[len("fixup! "):]
    if target != subject:
        next(group for group in reversed(groups) if group[0] == target)[1].append(commit)
    elif subject.startswith('Revert "') and any(f'Revert "{group[0]}"' == subject for group in groups):
        groups.remove(next(group for group in reversed(groups) if f'Revert "{group[0]}"' == subject))
    else:
        groups.append([subject, [commit]])

tip = main
git("read-tree", main)
for subject, commits in groups:
    before = line("write-tree")
    for commit in commits:
        git("apply", "--cached", given=git("diff-tree", "-p", "--binary", f"{commit}^", commit))
    after = line("write-tree")
    paths = git("diff-tree", "-r", "-z", "--name-only", before, after).decode().split("\0")
    docs = [path for path in paths if path.startswith("docs/")]
    source = [path for path in paths if path.startswith("src/")]
    first = commits[0]
    name, mail, date, message = git("log", "-1", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%B", first).decode().split("\0")
    message = message.rstrip("\n")
    if not message.endswith(TICKET):
        message += TICKET
    halves = [(after, "")]
    if docs and source:
        change = git("diff-tree", "-p", "--binary", before, after, "--", ".", ":!docs")
        git("read-tree", before)
        git("apply", "--cached", given=change)
        halves = [(line("write-tree"), ""), (after, "docs: ")]
        git("read-tree", after)
    env = dict(base_env, GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=mail, GIT_AUTHOR_DATE=f"@{date}")
    for tree, prefix in halves:
        tip = line("commit-tree", tree, "-p", tip, "-F", "-", given=(prefix + message + "\n").encode(), env=env)

outside = dict(os.environ)
git("branch", "archive/untidy", old, env=outside)
git("checkout", "--quiet", "exports", env=outside)
git("reset", "--quiet", "--hard", tip, env=outside)
EOF
cat > solve.sh <<'EOF'
#!/bin/bash
set -euo pipefail
python3 /solution/tidy.py
EOF
