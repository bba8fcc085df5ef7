[[ "$(</srv/box/who)" == clerk && "$(</srv/box/groups)" == $'audio\nclerk' ]] || exit 1
# Root could have written both: they are the clerk's own.
for file in /srv/box/who /srv/box/groups; do
  [[ "$(/usr/bin/stat -c '%U %F' "$file")" == "clerk regular file" ]] || exit 1
done
[[ "$(</srv/safe/seal)" == sealed && "$(/usr/bin/stat -c '%a %U' /srv/safe/seal)" == "600 root" ]]
