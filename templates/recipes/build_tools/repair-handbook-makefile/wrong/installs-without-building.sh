#!/bin/bash
set -euo pipefail
sed 's|^install: all|install:|' /solution/Makefile > /app/Makefile
