[[ "$(/usr/bin/sort /etc/rotate.d/web.conf)" == $'compress=yes\nkeep=14\npath=/var/log/web.log' ]]
