#!/bin/bash
set -e
sed -i "s/enumerate(sys.stdin)/enumerate(sys.stdin, 1)/" /app/longlines
