want=$(/usr/bin/cut -c1 /tests/pristine/names.txt | /usr/bin/sort -u | /usr/bin/wc -l)
for _ in {1..60}; do
  [[ -f /app/answer.txt && "$(</app/answer.txt)" == "$want" ]] && exit 0
  /usr/bin/sleep 0.03
done
exit 1
