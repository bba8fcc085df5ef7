#!/bin/bash
set -e
sort -k2,2n -o /app/scores.txt /app/scores.txt
tail -n 1 /app/scores.txt | cut -d' ' -f2 > /app/max.txt
