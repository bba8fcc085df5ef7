#!/bin/bash
set -euo pipefail
sed 's|^PAGE_INPUTS += config.mk|& FORCE|' /solution/Makefile > /app/Makefile
