mode=$(/usr/bin/stat -c %a /srv/share/minutes.txt) && ((8#$mode & 4)) && mode=$(/usr/bin/stat -c %a /srv/share) && ((8#$mode & 1))
