want=$(/usr/bin/cut -c1 /tests/pristine/names.txt | /usr/bin/sort -u | /usr/bin/wc -l)
# Ten seconds: on a busy machine a racer that changes its answer needs many tries to be seen at a right one.
for _ in {1..300}; do
  [[ -f /app/answer.txt && "$(</app/answer.txt)" == "$want" ]] && exit 0
  /usr/bin/sleep 0.03
done
exit 1
