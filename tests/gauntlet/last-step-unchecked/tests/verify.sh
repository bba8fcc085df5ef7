[[ "$(</app/names.txt)" == $'ada\njon\nmira' && "$(</app/ages.txt)" == $'41\n29\n35' ]]
