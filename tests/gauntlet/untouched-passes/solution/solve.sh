#!/bin/bash
set -e
mkdir -p /srv/drop
