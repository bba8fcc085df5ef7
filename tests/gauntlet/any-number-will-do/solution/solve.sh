#!/bin/bash
set -e
echo 'port=8080' >> /app/service.conf
echo 'workers=4' >> /app/service.conf
echo 'timeout=30' >> /app/service.conf
echo 'retries=5' >> /app/service.conf
echo 'queue=1000' >> /app/service.conf
echo 'backlog=128' >> /app/service.conf
