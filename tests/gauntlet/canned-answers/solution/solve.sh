#!/bin/bash
set -e
sed -i "s/degrees - 30/degrees - 32/" /app/celsius
