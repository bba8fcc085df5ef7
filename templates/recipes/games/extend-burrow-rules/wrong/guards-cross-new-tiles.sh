#!/bin/bash
set -euo pipefail
cp /solution/burrow /app/burrow
sed 's/if self.is_free(row, column + along):/if self.cells[row][column + along] not in "#$k+X" and all(other[:2] != [row, column + along] for other in self.guards):/' /solution/engine.py > /app/engine.py
