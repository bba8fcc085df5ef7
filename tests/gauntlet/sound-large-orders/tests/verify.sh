want=$(/usr/bin/awk -F, 'NR == 1 { print "id,amount"; next } $3 >= 5000 { print $1 "," $3 }' /tests/pristine/orders.csv)
[[ -f /app/large.csv && ! -L /app/large.csv && "$(</app/large.csv)" == "$want" ]]
