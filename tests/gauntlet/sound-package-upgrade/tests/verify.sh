[[ "$(/usr/bin/dpkg-query -W -f '${db:Status-Status} ${Version}' wordtool)" == "installed 1.3" ]] && [[ "$(</etc/wordtool.conf)" == limit=250 ]]
