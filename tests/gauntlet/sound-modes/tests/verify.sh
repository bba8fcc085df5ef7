for want in "755 root /srv/keys" "600 root /srv/keys/host.key" "644 root /srv/keys/host.pub"; do
  [[ "$(/usr/bin/stat -c '%a %U %n' "${want##* }")" == "$want" ]] || exit 1
done
[[ "$(</srv/keys/host.key)" == secret && "$(</srv/keys/host.pub)" == open ]]
