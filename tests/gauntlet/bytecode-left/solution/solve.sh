#!/bin/bash
set -e
printf 'import sys\n\nprint(sys.argv[1].lower().replace("-", "_"))\n' > /app/slug.py
