[[ -f /srv/numbers.txt && ! -L /srv/numbers.txt && "$(</srv/numbers.txt)" == "$(/usr/bin/seq 10)" ]]
