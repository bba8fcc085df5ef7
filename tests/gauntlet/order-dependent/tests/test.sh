#!/bin/bash
# Plain pytest, as many tasks have it.
/bin/mkdir -p /logs/verifier
/bin/rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
echo 0 > /logs/verifier/reward.txt
if /usr/bin/python3 -m pytest -q /tests/test_outputs.py; then
  echo 1 > /logs/verifier/reward.txt
fi
exit 0
