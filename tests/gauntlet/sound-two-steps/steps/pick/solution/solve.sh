#!/bin/bash
set -e
head -n 1 /app/sorted.txt > /app/first.txt
