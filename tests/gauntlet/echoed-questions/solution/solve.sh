#!/bin/bash
set -e
sed -i "s/sorted(sys.stdin.read().split(), reverse=True)/sorted(set(sys.stdin.read().split()))/" /app/wordlist
