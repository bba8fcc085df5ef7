#!/bin/sh
# deps.sh PAGE: the parts that a page includes, as make rules. Parts may disappear, so each is a target of its own.
sed -n "s|^include: [[:blank:]]*\([^[:blank:]]\{1,\}\).*|build/$1.html: parts/\1.txt\nparts/\1.txt:|p" "pages/$1.txt"
