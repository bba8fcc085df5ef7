#!/bin/bash
set -e
install -m 755 /opt/src/wordtool /usr/local/bin/wordtool
