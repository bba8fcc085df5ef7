# For variants that touch the changed files one by one. $CHANGED lists them.
NOT_APPLICABLE=3

# Whether some process has the file $1 open: another inode or another content under its hands is not the same state.
is_open() {
  local fd
  for fd in /proc/[0-9]*/fd/*; do
    [ "$fd" -ef "$1" ] && return 0
  done
  return 1
}

# Whether the file $1 can be written anew: regular, no link, under one name only, and nobody's at the moment.
is_plain() {
  [ -f "$1" ] && [ ! -L "$1" ] && [ "$(stat -c %h -- "$1")" = 1 ] && ! is_open "$1"
}

# Ends as not applicable unless $1 is above 0.
done_if_any() {
  [ "$1" -gt 0 ] || exit $NOT_APPLICABLE
}
