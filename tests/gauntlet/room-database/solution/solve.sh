#!/bin/bash
set -euo pipefail
sqlite3 -bail /app/library.db < /solution/migrate.sql
