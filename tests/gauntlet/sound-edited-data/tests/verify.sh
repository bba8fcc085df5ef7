want=$(LC_ALL=C /usr/bin/sort -k2,2n /tests/pristine/app/scores.txt)
[[ -f /app/scores.txt && ! -L /app/scores.txt && "$(</app/scores.txt)" == "$want" ]]
