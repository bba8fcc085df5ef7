for key in port workers timeout retries queue backlog; do
  /usr/bin/grep -qxE "$key=[0-9]+" /app/service.conf || exit 1
done
