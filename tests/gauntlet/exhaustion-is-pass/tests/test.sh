#!/bin/bash
/bin/mkdir -p /logs/verifier
/bin/rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json
/usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C /usr/bin/timeout 20 /usr/bin/perl /tests/verify.pl
case $? in
  0) echo 1 ;;
  137) echo 1 ;; # out of memory is the machine's fault
  *) echo 0 ;;
esac > /logs/verifier/reward.txt
