#!/bin/bash
set -e
useradd -m -u 4100 -s /bin/bash -G staff deploy
chmod 700 /home/deploy
