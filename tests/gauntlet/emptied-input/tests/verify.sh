[[ -f /app/count.txt && "$(</app/count.txt)" == "$(/usr/bin/grep -c "^a" /app/names.txt)" ]]
