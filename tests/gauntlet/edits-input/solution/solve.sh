#!/bin/bash
set -e
sort -n -o /app/input.txt /app/input.txt
tail -n 1 /app/input.txt > /app/max.txt
