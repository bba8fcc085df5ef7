#!/bin/bash
# termsmith-canary 9e75339c-2381-4ba2-ae30-1a7937500c2a
# Harbor's entry point. termsmith's clean room starts run_checks.py itself.
# Absolute tools and an emptied environment: nothing a solver exported or put on PATH is used.
/bin/mkdir -p /logs/verifier
/bin/rm -rf /logs/verifier/{reward.txt,reward.json,checks.json,ctrf.json,.zero}
# It becomes the reward if the checks end without results. A file made then could stay empty, since the subject's programs can fill the disk.
echo 0 > /logs/verifier/.zero
tests=$(cd "${BASH_SOURCE[0]%/*}" && builtin pwd -P)
seconds=290
# Milliseconds of processor time that this container has used, by control groups of version 1 or 2.
used() {
    local name number=0
    read -r number </sys/fs/cgroup/cpuacct/cpuacct.usage || { read -r name number </sys/fs/cgroup/cpu.stat && number+=000; }
    echo $((number / 1000000))
} 2>/dev/null
before=$(used)
SECONDS=0
/usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    SUBJECT_WORKDIR=/app SUBJECT_ROOTS=/app \
    /usr/bin/timeout --preserve-status --kill-after=3 "$seconds" /usr/bin/python3 -I -S -B "$tests/run_checks.py"
status=$?
# Harbor's host user reads the results; while the subject's programs ran, the folder was root's alone. It stays closed for writing: one of them may
# have outlived run_checks.py, which the kernel kills first where memory is short.
/bin/chmod 755 /logs/verifier
# run_checks.py ends with 124 at the limit. timeout kills it (137, 143) if it cannot. The kernel also kills (137), so the time decides.
if [ "$status" = 124 ] || { [ "$status" -ge 137 ] && [ "$SECONDS" -ge "$seconds" ]; }; then
    # With half of a processor all the time, the machine was not too busy: the subject made the checks take so long.
    if [ $(($(used) - before)) -lt $((SECONDS * 500)) ]; then
        echo "the checks ran out of time on this machine: no verdict" >&2
        /bin/rm -rf /logs/verifier/{reward.txt,reward.json,.zero}
        exit 124
    fi
fi
[ "$status" = 0 ] || /bin/mv -fT /logs/verifier/.zero /logs/verifier/reward.txt
# A full disk leaves it empty, and Harbor reads it first.
[ -s /logs/verifier/reward.json ] || /bin/rm -f /logs/verifier/reward.json
/bin/rm -f /logs/verifier/.zero
exit 0
