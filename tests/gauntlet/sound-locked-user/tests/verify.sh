IFS=: read -r _ word _ < <(/usr/bin/getent shadow former)
[[ $word == '!'* || $word == '*'* ]] && [[ "$(/usr/bin/getent passwd former)" == *:/usr/sbin/nologin ]] || exit 1
[[ ! -e /home/former/plans.txt && "$(/usr/bin/stat -c %U /home/heir/plans.txt)" == heir && "$(</home/heir/plans.txt)" == plans ]]
