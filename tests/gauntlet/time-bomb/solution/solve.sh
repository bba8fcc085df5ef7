#!/bin/bash
set -e
echo $(($(cat /app/issued) + 300 * 86400)) > /app/expires
