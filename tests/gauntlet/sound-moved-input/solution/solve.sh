#!/bin/bash
set -e
mkdir -p /app/archive
mv /app/incoming/access.log /app/archive/may.log
wc -l < /app/archive/may.log > /app/archive/lines.txt
