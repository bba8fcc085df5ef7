#!/bin/bash
# One library, one configuration file, and the same few lines for every command.
set -euo pipefail
install -D -m 644 /solution/sweep.sh /app/lib/sweep.sh
install -D -m 640 /solution/sweep.conf /app/etc/sweep.conf
for command in /app/bin/sweep-*; do
    install -m 755 /solution/command.sh "$command"
done
