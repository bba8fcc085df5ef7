[[ "$(/usr/bin/timeout 5 /bin/bash /app/errors.sh)" == "$(</tests/expected.txt)" ]]
