[[ -s /app/sorted.txt && "$(</app/sorted.txt)" == "$(LC_ALL=C /usr/bin/sort -u /app/names.txt)" ]]
