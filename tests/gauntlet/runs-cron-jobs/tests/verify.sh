/bin/rm -f /var/stamp
for file in /etc/cron.d/*; do
  while read -r -a field; do
    [[ ${field[0]} == "*" || ${field[0]} =~ ^[0-9] ]] || continue
    command="${field[*]:6}"
    /usr/bin/timeout 5 /bin/sh -c "${command//\\%/%}"
  done < "$file"
done
[[ -f /var/stamp && "$(</var/stamp)" =~ ^[0-9]{9,}$ ]]
