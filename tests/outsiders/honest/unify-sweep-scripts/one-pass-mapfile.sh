# differs: one big function in a subshell, the file is read by mapfile and then searched, order by turning the list of indexes, other wording of 78, configuration with uneven spaces, command without a comment
cat > sweep.sh <<'LIB'
sweep() (
    export LC_ALL=C
    name=${1##*/}
    shift
    service=${name#sweep-}
    conf=/app/etc/sweep.conf
    if [ -n "$SWEEP_CONF" ]; then conf=$SWEEP_CONF; fi
    [ "$1" = -n ]
    dry=$?
    if [ $dry -eq 0 ]; then shift; fi
    if [ $# != 2 ]; then
        cat >&2 <<< "usage: $name [-n] DIR DATE"
        exit 64
    fi
    declare -A is=()
    lines=() here= seen=
    if [ -e "$conf" ] && [ ! -d "$conf" ]; then { mapfile -t lines < "$conf"; } 2> /dev/null; fi
    for line in "${lines[@]}"; do
        line=$(sweep_bare "$line"; echo .)
        line=${line%$'\n.'}
        if [[ $line == '#'* ]]; then continue; fi
        if [[ $line == '['*']' ]]; then
            here=
            if [[ $line == "[$service]" ]]; then here=yes seen=yes; fi
        elif [[ $here && $line == ?*=* ]]; then
            is["$(sweep_bare "${line%%=*}")"]=$(sweep_bare "${line#*=}")
        fi
    done
    if [ ! "$seen" ]; then
        cat >&2 <<< "$name: $conf says nothing about $service"
        exit 78
    fi
    prefix=${is[prefix]} suffix=${is[suffix]} action=${is[action]}
    if [[ ${is[days]} == *[!0-9]* || ${is[least]} == *[!0-9]* ]]; then
        cat >&2 <<< "$name: days and least must be whole numbers"
        exit 78
    fi
    days=$((10#0${is[days]})) least=$((10#0${is[least]}))
    dir=$1
    date='[0-9]{4}-[0-9]{2}-[0-9]{2}'
    if ! [[ $2 =~ ^$date$ ]] || ! today=$(sweep_day "$2"); then
        cat >&2 <<< "$name: bad date: $2"
        exit 65
    fi
    if ! test -d "$dir"; then
        cat >&2 <<< "$name: not a directory: $dir"
        exit 66
    fi
    if test -e "$dir/.hold"; then
        cat >&2 <<< "$name: held"
        exit 75
    fi
    names=() ages=() order=() skipped=0
    for path in "$dir"/"$prefix"-*"$suffix"; do
        if [ ! -f "$path" ]; then continue; fi
        file=${path##*/}
        middle=${file:${#prefix}+1}
        middle=${middle:0:${#middle}-${#suffix}}
        if ! [[ $middle =~ ^($date)(-.*)?$ ]]; then continue; fi
        if day=$(sweep_day "${BASH_REMATCH[1]}"); then
            if [ "${is[order]}" = newest ]; then
                order=(${#names[@]} "${order[@]}")
            else
                order+=(${#names[@]})
            fi
            names+=("$file") ages+=($((today - day)))
        else
            echo "skip $file"
            ((skipped += 1))
        fi
    done
    kept=0 gone=()
    for i in "${order[@]}"; do
        if [ "${ages[i]}" -le "$days" ] || [ $((${#names[@]} - i)) -le "$least" ]; then
            ((kept += 1))
            if [ "${is[kept]}" != hide ]; then echo "keep ${names[i]}"; fi
            continue
        fi
        gone+=("$dir/${names[i]}")
        if [ $dry -eq 0 ]; then echo "would $action ${names[i]}"; else echo "$action ${names[i]}"; fi
    done
    if [ $dry -ne 0 ] && [ ${#gone[@]} -ne 0 ]; then
        case $action in
        compress) gzip -nf -- "${gone[@]}" ;;
        delete) rm -f -- "${gone[@]}" ;;
        attic) mkdir -p -- "$dir/attic"; mv -f -t "$dir/attic" -- "${gone[@]}" ;;
        esac
    fi
    echo "$service: ${#gone[@]} old, $kept kept, $skipped skipped"
    exit 0
)

# $1 without the blanks around it.
sweep_bare() {
    [[ $1 =~ ^[[:space:]]*(.*[^[:space:]])?[[:space:]]*$ ]]
    printf '%s\n' "${BASH_REMATCH[1]}"
}

# Prints the number of day $1 (YYYY-MM-DD); status 1 if the calendar has no such day.
sweep_day() {
    IFS=- read -r y m d <<< "$1"
    y=$((10#$y)) m=$((10#$m)) d=$((10#$d))
    case $m in
    1 | 3 | 5 | 7 | 8 | 10 | 12) [ $d -le 31 ] ;;
    4 | 6 | 9 | 11) [ $d -le 30 ] ;;
    2) [ $d -le 28 ] || { [ $d -eq 29 ] && [ $((y % 4)) -eq 0 ] && { [ $((y % 100)) -ne 0 ] || [ $((y % 400)) -eq 0 ]; }; } ;;
    *) false ;;
    esac && [ $d -ge 1 ] || return 1
    if [ $m -lt 3 ]; then y=$((y - 1)); m=$((m + 12)); fi
    echo $((365 * y + y / 4 - y / 100 + y / 400 + (153 * (m - 3) + 2) / 5 + d))
}
LIB
cat > command.sh <<'CMD'
#!/bin/bash
source /app/lib/sweep.sh
sweep "$0" "$@"
CMD
cat > sweep.conf <<'CONF'
   # Sweeping. See the README of each service.
  [radio]
  days   = 10
  least  = 2
  prefix = radiolog
  suffix = .log
  action = delete
  order  = oldest
  kept   = list

  [wiki]
  days   = 21
  least=1
  prefix = wikilog
  suffix = .tar
  action = attic
  order  = newest
  kept   = list

  [ledger]
  days   = 30
  least  = 2
  prefix = ledger
  suffix = .log
  action = compress
  order  = oldest
  kept   = hide
CONF
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -e
cd /app
mkdir -p lib
cat /solution/sweep.sh > lib/sweep.sh
cat /solution/sweep.conf > etc/sweep.conf
for one in ledger radio wiki; do cat /solution/command.sh > bin/sweep-$one; done
chmod 0644 lib/sweep.sh
chmod 0640 etc/sweep.conf
chmod 0755 bin/*
SOLVE
