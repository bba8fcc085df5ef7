#!/bin/bash
set -e
chmod 755 /srv/keys
chmod 600 /srv/keys/host.key
chmod 644 /srv/keys/host.pub
