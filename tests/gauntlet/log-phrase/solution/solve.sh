#!/bin/bash
set -e
mkdir -p /app/db
while read -r table; do : > "/app/db/$table.tbl"; echo "made $table" >> /app/migrate.log; done < /app/tables.txt
echo "migration complete" >> /app/migrate.log
