#!/bin/bash
if diff -q <(/usr/bin/awk '$4 >= 500 { print $1 }' /tests/pristine/access.log | LC_ALL=C /usr/bin/sort -u) /app/errors.txt; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
