#!/bin/bash
set -e
cat > /app/add.sh <<'END'
#!/bin/bash
total=$(cat /app/total 2>/dev/null || echo 0)
if [ $# -gt 0 ]; then
  if ! [[ $1 =~ ^-?[0-9]+$ ]]; then
    echo "not a number: $1" >&2
    exit 2
  fi
  sign=1
  if [ "${1:0:1}" = - ]; then sign=-1; fi
  total=$((total + sign * 10#${1#-}))
  echo "$total" > /app/total
fi
echo "$total"
END
chmod +x /app/add.sh
