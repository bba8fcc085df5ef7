want=$(/usr/bin/awk '$2 > most { most = $2 } END { print most }' /tests/pristine/app/scores.txt)
[[ -f /app/max.txt && ! -L /app/max.txt && "$(</app/max.txt)" == "$want" ]]
