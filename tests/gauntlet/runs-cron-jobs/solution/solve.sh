#!/bin/bash
set -e
mkdir -p /etc/cron.d
printf '* * * * * root date +\\%%s > /var/stamp\n' > /etc/cron.d/stamp
