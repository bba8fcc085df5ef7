#!/bin/bash
# Absolute tools, an emptied environment, and a verdict that is written whatever happens.
/bin/mkdir -p /logs/verifier
/bin/rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
echo 0 > /logs/verifier/reward.txt
/bin/chmod 700 /logs/verifier /tests
if /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    /usr/bin/timeout 60 /usr/bin/python3 -I -S -B -X pycache_prefix=/var/empty /tests/verify.py; then
  echo 1 > /logs/verifier/reward.txt
fi
# For whoever collects the results.
/bin/chmod 777 /logs/verifier
/bin/sleep 3
exit 0
