#!/bin/bash
set -e
date +%Y%m > /app/closing
