#!/bin/bash
set -e
LC_ALL=C sort -u /app/names.txt > /app/sorted.txt
