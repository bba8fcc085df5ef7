#!/bin/bash
set -euo pipefail
cp /solution/server.py /app/server.py
cat > /app/start.sh <<'START'
#!/bin/bash
setsid python3 /app/server.py < /dev/null &> /dev/null &
START
