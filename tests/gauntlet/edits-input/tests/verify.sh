# The input is /app/input.txt.
[[ -f /app/max.txt && "$(</app/max.txt)" == "$(/usr/bin/sort -n /app/input.txt | /usr/bin/tail -n 1)" ]]
