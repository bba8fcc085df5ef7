#!/bin/bash
set -euo pipefail
cp /solution/engine.py /app/engine.py
cp /solution/burrow /app/burrow
