#!/bin/bash
echo 0 > /logs/verifier/reward.txt
# The report is written only when there is something to report on.
if [ -e /app/errors.txt ]; then
  if /bin/bash --noprofile --norc /tests/verify.sh; then echo 1; else echo 0; fi > /logs/verifier/passed
fi
[ "$(/bin/cat /logs/verifier/passed)" = 1 ] && echo 1 > /logs/verifier/reward.txt
