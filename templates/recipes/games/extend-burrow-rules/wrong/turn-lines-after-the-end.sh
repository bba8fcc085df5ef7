#!/bin/bash
set -euo pipefail
cp /solution/engine.py /app/engine.py
python3 - <<'EOF'
text = open("/solution/burrow").read()
text = text.replace("            break\n        game.turn(move)", "            game.turns += 1\n        else:\n            game.turn(move)")
open("/app/burrow", "w").write(text)
EOF
