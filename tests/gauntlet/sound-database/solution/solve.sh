#!/bin/bash
set -e
sqlite3 /app/items.db 'CREATE TABLE items(id INTEGER PRIMARY KEY, kind TEXT, stock INTEGER)'
sqlite3 /app/items.db '.mode csv' '.import /app/items.csv items'
