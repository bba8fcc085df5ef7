#!/bin/bash
if /bin/bash --noprofile --norc /tests/verify.sh; then echo 1; else echo FAIL; fi > /logs/verifier/reward.txt
