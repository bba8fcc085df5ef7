[[ -f /app/first.txt && ! -L /app/first.txt && "$(</app/first.txt)" == "$(LC_ALL=C /usr/bin/sort /tests/names.txt | /usr/bin/head -n 1)" ]]
