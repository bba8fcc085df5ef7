#!/bin/bash
set -e
sed -i -e 's/^keep=.*/keep=14/' -e 's/^compress=.*/compress=yes/' /etc/rotate.d/web.conf
