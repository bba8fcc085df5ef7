[[ "$(/usr/bin/dpkg-query -W -f '${db:Status-Status} ${Version}' wordtool)" == "installed 1.2" ]] || exit 1
# The program runs as nobody, who cannot write a reward.
/bin/chmod 700 /logs/verifier
nobody=(/usr/bin/setpriv --reuid nobody --regid nogroup --clear-groups --no-new-privs /usr/bin/timeout 5)
text=$(/usr/bin/mktemp) && count=$((RANDOM % 90 + 10)) && /usr/bin/seq "$count" > "$text" && /bin/chmod 644 "$text" || exit 1
[[ "$("${nobody[@]}" /usr/bin/wordtool "$text")" == "$count words" && "$(/usr/bin/dpkg -V wordtool)" == "" ]]
