#!/bin/bash
set -e
seq 10 > /srv/numbers.txt
