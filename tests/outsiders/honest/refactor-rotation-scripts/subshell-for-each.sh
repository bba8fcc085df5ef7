# differs: every NAME is done in a subshell that stops at the first command that fails, settings are read with awk, messages about bad settings differ, the settings are in another order, the hand-over takes the name from its own file name
cat > solve.sh <<'S'
#!/bin/bash
set -euo pipefail
umask 022
mkdir -p /app/bin /app/etc/logturn.d
chmod 0755 /app/bin /app/etc/logturn.d
cat > /app/bin/rotate <<'T'
#!/bin/bash
# rotate [-c FOLDER] NAME...
umask 077
conf=/app/etc/logturn.d
if [ "$1" = -c ]; then conf=$2; shift; [ $# -eq 0 ] || shift; fi
[ $# -gt 0 ] || { echo "rotate: no name given" >&2; exit 2; }

refuse() { printf '%s: %s\n' "$name" "$1" >&2; exit 1; }

one() {
  local n next
  [[ $name && $name != *[!abcdefghijklmnopqrstuvwxyz0123456789-]* ]] || refuse 'not a valid name'
  [[ -f $conf/$name.conf && -r $conf/$name.conf ]] || refuse "cannot read $conf/$name.conf"
  value() {
    local k=$1
    [ "$(grep -c "^$k=" "$conf/$name.conf")" = 1 ] || refuse "settings need one line $k=..."
    REPLY=$(sed -n "s/^$k=//p" "$conf/$name.conf"; echo .)
    REPLY=${REPLY%?}; REPLY=${REPLY%$'\n'}
  }
  ! grep -vqE '^(#|$|(dir|file|keep|compress_from|min_bytes|mode|method)=)' "$conf/$name.conf" || refuse 'settings have a line that is unknown'
  value dir; dir=$REPLY; value file; file=$REPLY; value keep; keep=$REPLY; value compress_from; from=$REPLY
  value min_bytes; min=$REPLY; value mode; mode=$REPLY; value method; method=$REPLY
  case /$dir/ in //* | */../*) refuse 'bad dir' ;; esac
  case $file in '' | . | .. | */*) refuse 'bad file' ;; esac
  for n in "$keep" "$from" "$min"; do case $n in '' | *[!0123456789]*) refuse 'bad number' ;; esac; done
  keep=$((10#$keep)) from=$((10#$from)) min=$((10#$min))
  [ "$keep" -ge 1 ] || refuse 'bad keep'
  [[ $mode =~ ^[01234567][01234567][01234567][01234567]$ ]] || refuse 'bad mode'
  case $method in move | copy) ;; *) refuse 'bad method' ;; esac

  dir=${LOG_ROOT:-/var/log}/$dir
  [ -d "$dir" ] || refuse "no directory $dir"
  log=$dir/$file
  [ -f "$log" ] || { echo "$name: no log $log"; exit 0; }
  size=$(wc -c < "$log")
  [ "$size" -ge "$min" ] || { echo "$name: skipped, $size bytes"; exit 0; }
  squeeze() { [ "$from" -eq 0 ] || [ "$1" -lt "$from" ] || gzip -n -- "$log.$1"; }
  set -e
  rm -f -- "$log.$keep" "$log.$keep.gz"
  n=$keep
  while [ "$n" -gt 1 ]; do
    next=$n n=$((n - 1))
    if [ -f "$log.$n.gz" ]; then
      mv -f -- "$log.$n.gz" "$log.$next.gz"
    elif [ -f "$log.$n" ]; then
      mv -f -- "$log.$n" "$log.$next"
      squeeze "$next"
    fi
  done
  case $method in
    move) mv -f -- "$log" "$log.1" ;;
    copy) rm -f -- "$log.1"; cp -p -- "$log" "$log.1" ;;
  esac
  : > "$log"
  chmod -- "$mode" "$log"
  squeeze 1
  echo "$name: rotated $size bytes"
}

bad=0
for name; do
  (one)
  [ $? -eq 0 ] || bad=1
done
exit $bad
T
chmod 0755 /app/bin/rotate
cd /app/etc/logturn.d
printf '%s\n' method=move mode=0640 min_bytes=2900 compress_from=3 keep=7 file=status.log dir=openvpn > vpn.conf
printf '%s\n' method=move mode=0644 min_bytes=2385 compress_from=2 keep=3 file=cache.log dir=squid > proxy.conf
printf '%s\n' method=move mode=0600 min_bytes=5120 compress_from=2 keep=4 file=backup.log dir=borg > backup.conf
for conf in vpn proxy backup; do
  chmod 0640 $conf.conf
  printf '#!/bin/bash\n# Hands over to the tool.\nname=${0##*/rotate-}\nexec /app/bin/rotate "${name%%.sh}"\n' > /app/rotate/rotate-$conf.sh
  chmod 755 /app/rotate/rotate-$conf.sh
done
sed -i -E '/^#/!s,/app/rotate/rotate-(vpn|proxy|backup)\.sh$,/app/bin/rotate \1,' /app/etc/cron.d/log-rotation
S
