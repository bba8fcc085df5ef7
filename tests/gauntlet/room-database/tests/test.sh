#!/bin/bash
# termsmith-canary 70631424-145f-40d9-a529-f11dc2fe214e
# Harbor's entry point. termsmith's clean room starts run_checks.py itself.
# Absolute tools and an emptied environment: nothing a solver exported or put on PATH is used.
/bin/mkdir -p /logs/verifier
/bin/rm -f /logs/verifier/reward.txt /logs/verifier/reward.json /logs/verifier/checks.json /logs/verifier/ctrf.json
echo 0 > /logs/verifier/reward.txt
tests=$(cd "${BASH_SOURCE[0]%/*}" && builtin pwd -P)
/usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    SUBJECT_WORKDIR=/app SUBJECT_ROOTS=/app \
    /usr/bin/timeout 55 /usr/bin/python3 -I -B "$tests/run_checks.py"
# Harbor's host user reads the results; while the subject's programs ran, the folder was root's alone.
/bin/chmod 777 /logs/verifier
exit 0
