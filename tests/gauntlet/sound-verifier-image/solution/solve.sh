#!/bin/bash
set -e
awk '$4 >= 500 { print $1 }' /app/access.log | LC_ALL=C sort -u > /app/errors.txt
