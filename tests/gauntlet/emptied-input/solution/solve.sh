#!/bin/bash
set -e
grep -c '^a' /app/names.txt > /app/count.txt
