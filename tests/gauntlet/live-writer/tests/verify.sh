# Most tests take a second or more. One of a few milliseconds can be over before a process that watches for it runs.
/usr/bin/sleep 1
want=$(/usr/bin/awk '$4 >= 500 { print $1 }' /tests/pristine/access.log | LC_ALL=C /usr/bin/sort -u)
[[ -f /app/errors.txt && ! -L /app/errors.txt && "$(</app/errors.txt)" == "$want" ]]
