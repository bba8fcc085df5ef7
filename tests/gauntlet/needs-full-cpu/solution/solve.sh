#!/bin/bash
set -e
cat > /app/spin.py <<'EOF'
import time
while time.process_time() < 0.3:
    sum(range(1000))
print("done")
EOF
