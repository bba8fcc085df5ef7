[[ -f /app/sorted.txt && ! -L /app/sorted.txt && "$(</app/sorted.txt)" == "$(LC_ALL=C /usr/bin/sort -u /tests/pristine/names.txt)" ]]
