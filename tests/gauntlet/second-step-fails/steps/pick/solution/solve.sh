#!/bin/bash
set -e
tail -n 1 /app/sorted.txt > /app/first.txt
