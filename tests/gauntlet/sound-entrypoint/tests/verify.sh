#!/bin/bash
# The service still runs, and the copy is what the image's ENTRYPOINT wrote.
before=$(cat /app/beat)
sleep 2
[ "$(cat /app/beat)" -gt "$before" ] && [ "$(cat /app/out.txt)" = hello ]
