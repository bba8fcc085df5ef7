#!/bin/bash
if python3 -I -S -B /tests/verify.py; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
