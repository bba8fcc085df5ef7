#!/bin/bash
set -euo pipefail
dpkg --purge stocklist
dpkg --install /srv/packages/stockwatch-rules_2.1_all.deb /srv/packages/stockwatch_2.0_all.deb
echo 'stockwatch-rules hold' | dpkg --set-selections
sed -i -e 's/^limit = .*/limit = 25/' -e 's/^order = .*/order = quantity/' -e '/^limit\.cold/a limit.dry = 40' /etc/stockwatch.conf
