#!/bin/bash
# Reference: the reader and the engine, each with the new kinds of rules; the command line stays as it is.
set -euo pipefail
cp /solution/rules.py /app/fwlib/rules.py
cp /solution/engine.py /app/fwlib/engine.py
