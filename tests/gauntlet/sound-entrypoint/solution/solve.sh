#!/bin/bash
set -e
until [ -s /app/beat ]; do sleep 0.1; done
cp /app/greeting.txt /app/out.txt
