# For variants that touch the changed files one by one. $CHANGED lists them.
NOT_APPLICABLE=3

# What processes have open: another inode or another content under their hands is not the same state.
declare -A opened=()
while IFS= read -r path; do
  opened[$path]=1
done < <(find /proc/[0-9]*/fd -lname '/*' -printf '%l\n' 2> /dev/null)

# Whether the file $1 can be written anew: regular, no link, under one name only, nobody's at the moment, and not git's own.
is_plain() {
  case $1 in */.git/*) return 1 ;; esac
  [ -f "$1" ] && [ ! -L "$1" ] && [ "$(stat -c %h -- "$1")" = 1 ] && [ -z "${opened[$1]+x}" ]
}

# Whether the file $1 lies in a git work tree: another content, or a file beside it, would be a change to commit.
in_repository() {
  local folder=${1%/*}
  while [ -n "$folder" ]; do
    [ ! -e "$folder/.git" ] || return 0
    folder=${folder%/*}
  done
  return 1
}

# Ends as not applicable unless $1 is above 0.
done_if_any() {
  [ "$1" -gt 0 ] || exit $NOT_APPLICABLE
}
