[[ -L /etc/motd && "$(/usr/bin/realpath /etc/motd)" == /etc/motd.d/10-welcome && "$(</etc/motd)" == "Welcome aboard" ]]
