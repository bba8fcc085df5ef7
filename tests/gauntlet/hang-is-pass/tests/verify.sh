want=$(/usr/bin/awk '$4 >= 500 { print $1 }' /tests/pristine/access.log | LC_ALL=C /usr/bin/sort -u)
[[ -e /app/errors.txt && "$(</app/errors.txt)" == "$want" ]]
