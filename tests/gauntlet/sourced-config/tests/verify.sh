. /app/service.conf
[[ $PORT == 8080 && $WORKERS == 4 ]]
