#!/bin/bash
set -e
dpkg --force-confold -i /opt/wordtool_1.3.deb
