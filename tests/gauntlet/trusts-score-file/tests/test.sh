#!/bin/bash
# A score that an earlier stage wrote is kept.
if [ ! -s /logs/verifier/score ]; then
  if /bin/bash --noprofile --norc /tests/verify.sh; then echo 1; else echo 0; fi > /logs/verifier/score
fi
/bin/cat /logs/verifier/score > /logs/verifier/reward.txt
