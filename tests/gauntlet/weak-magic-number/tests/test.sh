#!/bin/bash
# Absolute tools, an emptied environment, and a verdict that is written whatever happens.
/bin/mkdir -p /logs/verifier
/bin/rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
echo 0 > /logs/verifier/reward.txt
if [ "$(/usr/bin/head -c 4 /app/tool | /usr/bin/od -An -c | /usr/bin/tr -d ' ')" = 177ELF ]; then
  echo 1 > /logs/verifier/reward.txt
fi
exit 0
