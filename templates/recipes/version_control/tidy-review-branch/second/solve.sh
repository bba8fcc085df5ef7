#!/bin/bash
# No rebase: the new commits are made from patches with plumbing commands.
set -euo pipefail
python3 /solution/tidy.py
