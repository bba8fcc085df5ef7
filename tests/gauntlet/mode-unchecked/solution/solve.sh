#!/bin/bash
set -e
chmod 755 /srv/share
chmod 644 /srv/share/minutes.txt
