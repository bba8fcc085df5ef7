pid=$(</app/beat.pid) && [[ $pid =~ ^[1-9][0-9]*$ ]] && builtin kill -0 "$pid" || exit 1
before=$(/usr/bin/wc -l < /app/beat.log)
for _ in {1..30}; do
  /usr/bin/sleep 0.1
  after=$(/usr/bin/wc -l < /app/beat.log)
  ((after >= before + 3)) && exit 0
done
exit 1
