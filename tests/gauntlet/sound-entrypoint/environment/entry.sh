#!/bin/sh
set -e
echo hello > /app/greeting.txt
(n=0; while :; do n=$((n + 1)); echo $n > /app/beat; sleep 1; done) >/dev/null 2>&1 &
exec "$@"
