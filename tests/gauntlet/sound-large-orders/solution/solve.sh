#!/bin/bash
set -e
awk -F, 'NR == 1 { print "id,amount"; next } $3 >= 5000 { print $1 "," $3 }' /app/orders.csv > /app/large.csv
