want=$(/usr/bin/awk '$4 >= 500 { print $1 }' /tests/pristine/access.log | LC_ALL=C /usr/bin/sort -u)
[[ -f /app/errors.txt && ! -L /app/errors.txt ]] || echo "errors.txt is missing"
[[ "$(cat /app/errors.txt 2>&1)" == "$want" ]] || echo "errors.txt lists other addresses"
exit 0
