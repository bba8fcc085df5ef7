#!/bin/bash
set -e
cat > /app/retry.py <<'EOF'
import time


def fetch(call, max_retries):
    for attempt in range(max_retries + 1):
        try:
            return call()
        except TimeoutError:
            if attempt == max_retries:
                raise
            time.sleep(1)
EOF
