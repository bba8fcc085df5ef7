#!/bin/bash
set -e
printf 'book.txt: intro.txt body.txt\n\tcat $^ > $@\n' > /app/Makefile
