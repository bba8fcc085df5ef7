[[ -f /app/whole.txt && ! -L /app/whole.txt && "$(</app/whole.txt)" == "$(/usr/bin/tar -xOzf /tests/pristine/parts.tar.gz)" ]]
