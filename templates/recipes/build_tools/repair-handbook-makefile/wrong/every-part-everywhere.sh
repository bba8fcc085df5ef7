#!/bin/bash
set -euo pipefail
sed -e 's|^PAGE_INPUTS += config.mk|& $(wildcard parts/*.txt)|' -e '/^-include/d' /solution/Makefile > /app/Makefile
