#!/bin/bash
set -e
cut -c1 /app/names.txt | sort -u | wc -l > /app/answer.txt
