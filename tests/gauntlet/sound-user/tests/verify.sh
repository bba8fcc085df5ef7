IFS=: read -r name _ uid _ _ home shell < <(/usr/bin/getent passwd deploy)
[[ $name == deploy && $uid == 4100 && $home == /home/deploy && $shell == /bin/bash ]] || exit 1
[[ " $(/usr/bin/id -nG deploy) " == *" staff "* && "$(/usr/bin/stat -c '%a %U' /home/deploy)" == "700 deploy" ]]
