[[ -f /app/Makefile ]] || exit 1
# make runs as nobody, who cannot write a reward.
/bin/chmod 700 /logs/verifier
nobody=(/usr/bin/setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs /usr/bin/timeout 5)
room=$(/usr/bin/mktemp -d) && cd "$room" && /bin/cp /app/Makefile . && text=$RANDOM$RANDOM || exit 1
echo "$text" > intro.txt; echo body > body.txt; /bin/chmod 644 *; /bin/chown -R nobody .
"${nobody[@]}" /usr/bin/make -s > /dev/null 2>&1
first=$(<book.txt)
echo more >> body.txt; /usr/bin/touch -d '+1 minute' body.txt
"${nobody[@]}" /usr/bin/make -s > /dev/null 2>&1
second=$(<book.txt)
cd / && /bin/rm -rf "$room"
[[ $first == "$text"$'\nbody' && $second == "$text"$'\nbody\nmore' ]]
