[[ -d /srv/drop ]]
