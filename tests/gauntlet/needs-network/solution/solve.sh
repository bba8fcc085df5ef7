#!/bin/bash
set -e
awk '$2 == "00000000" { print $1; exit }' /proc/net/route > /app/interface.txt
[ -s /app/interface.txt ]
