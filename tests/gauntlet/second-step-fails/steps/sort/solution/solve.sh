#!/bin/bash
set -e
LC_ALL=C sort /app/names.txt > /app/sorted.txt
