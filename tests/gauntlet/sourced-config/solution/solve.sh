#!/bin/bash
set -e
awk '{ print toupper($1) "=" $2 }' /app/defaults.txt > /app/service.conf
