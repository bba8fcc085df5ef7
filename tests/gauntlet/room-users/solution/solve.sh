#!/bin/bash
set -euo pipefail
groupadd --gid 4200 archive
useradd --uid 4201 --gid archive --shell /bin/bash --comment 'Mira Lindqvist' --expiredate 2031-03-31 mira
useradd --uid 4202 --gid archive --shell /bin/bash --comment 'Tomas Okafor' tomas
chage --maxdays 90 --warndays 14 tomas
install -d -o mira -g archive -m 0750 /home/mira
install -d -o tomas -g archive -m 0750 /home/tomas
usermod --lock --shell /usr/sbin/nologin --groups '' olek
install -d -o root -g archive -m 0770 /srv/archive
install -d -o tomas -g archive -m 0750 /srv/archive/incoming
mkdir -p /etc/security/limits.d
cat > /etc/security/limits.d/archive.conf <<'CONF'
# Limits of the archive team.
@archive hard fsize 300000
@archive soft nofile 4096
CONF
