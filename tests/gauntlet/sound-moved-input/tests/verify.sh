[[ ! -e /app/incoming/access.log && -f /app/archive/may.log && ! -L /app/archive/may.log && -f /app/archive/lines.txt ]] || exit 1
/usr/bin/cmp -s /app/archive/may.log /tests/pristine/access.log || exit 1
[[ "$(</app/archive/lines.txt)" == "$(/usr/bin/wc -l < /tests/pristine/access.log)" ]]
