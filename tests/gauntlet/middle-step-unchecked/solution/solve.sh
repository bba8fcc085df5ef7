#!/bin/bash
set -e
cut -d' ' -f1 /app/staff.txt > /app/names.txt
cut -d' ' -f2 /app/staff.txt > /app/ages.txt
awk '{ sum += $2 } END { print sum }' /app/staff.txt > /app/sum.txt
