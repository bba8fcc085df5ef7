[[ "$(/usr/bin/dpkg-query -W -f '${db:Status-Status} ${Version}' wordtool)" == "installed 1.2" ]] || exit 1
text=$(/usr/bin/mktemp) && count=$((RANDOM % 90 + 10)) && /usr/bin/seq "$count" > "$text" || exit 1
[[ "$(/usr/bin/wordtool "$text")" == "$count words" && "$(/usr/bin/dpkg -V wordtool)" == "" ]]
