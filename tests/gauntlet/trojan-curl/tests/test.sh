#!/bin/bash
if [ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8081/health)" = 200 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
