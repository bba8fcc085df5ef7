#!/bin/bash
# Absolute tools, an emptied environment, and a verdict that is written whatever happens.
/bin/mkdir -p /logs/verifier
/bin/rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
echo 0 > /logs/verifier/reward.txt
if /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 /usr/bin/timeout 20 /bin/bash --noprofile --norc /tests/verify.sh; then
  echo 1 > /logs/verifier/reward.txt
fi
exit 0
