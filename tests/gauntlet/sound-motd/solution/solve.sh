#!/bin/bash
set -e
mkdir -p /etc/motd.d
echo 'Welcome aboard' > /etc/motd.d/10-welcome
ln -sf motd.d/10-welcome /etc/motd
