[[ "$(</app/names.txt)" == $'ada\njon\nmira' && "$(</app/sum.txt)" == 105 ]]
