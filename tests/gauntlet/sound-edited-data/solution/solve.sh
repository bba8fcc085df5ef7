#!/bin/bash
set -e
sort -k2,2n -o /app/scores.txt /app/scores.txt
