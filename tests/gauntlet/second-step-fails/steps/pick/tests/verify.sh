[[ -f /app/first.txt && ! -L /app/first.txt && "$(</app/first.txt)" == "$(LC_ALL=C /usr/bin/sort /tests/pristine/names.txt | /usr/bin/head -n 1)" ]]
