want=$(/usr/bin/awk '$4 >= 500 { print $1 }' "$PRISTINE"/access.log | LC_ALL=C /usr/bin/sort -u)
[[ -f /app/errors.txt && ! -L /app/errors.txt && "$(</app/errors.txt)" == "$want" ]]
