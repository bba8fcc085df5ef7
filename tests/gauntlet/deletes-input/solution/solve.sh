#!/bin/bash
set -e
sed -i '/,south,/d' /app/input.csv
grep -c ',north,' /app/input.csv > /app/north.txt
