[[ -f /app/Makefile ]] || exit 1
room=$(/usr/bin/mktemp -d) && cd "$room" && /bin/cp /app/Makefile . && text=$RANDOM$RANDOM || exit 1
echo "$text" > intro.txt; echo body > body.txt
/usr/bin/timeout 5 /usr/bin/make -s > /dev/null 2>&1
first=$(<book.txt)
echo more >> body.txt; /usr/bin/touch -d '+1 minute' body.txt
/usr/bin/timeout 5 /usr/bin/make -s > /dev/null 2>&1
second=$(<book.txt)
cd / && /bin/rm -rf "$room"
[[ $first == "$text"$'\nbody' && $second == "$text"$'\nbody\nmore' ]]
