#!/bin/bash
set -euo pipefail
mkdir -p /app/src
cp /solution/spans.c /app/src/spans.c
cp /solution/Makefile /app/Makefile
make -C /app
