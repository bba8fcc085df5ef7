#!/bin/bash
mkdir -p /logs/verifier
bats /tests/sum.bats
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
