#!/bin/bash
set -e
dpkg -i /opt/wordtool_1.2.deb
