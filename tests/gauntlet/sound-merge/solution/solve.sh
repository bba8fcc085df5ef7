#!/bin/bash
set -e
cd /app/repo
git merge -q --no-edit side
