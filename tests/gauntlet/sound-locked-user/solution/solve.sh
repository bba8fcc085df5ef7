#!/bin/bash
set -e
usermod -L -s /usr/sbin/nologin former
mv /home/former/plans.txt /home/heir/plans.txt
chown heir: /home/heir/plans.txt
