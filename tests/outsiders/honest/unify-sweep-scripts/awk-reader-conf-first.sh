# differs: the section is looked up before the arguments (78 wins over 64), the file is read by awk, file names are taken apart without regular expressions, compact configuration without a line end at its end
cat > sweep.sh <<'LIB'
# Shared by all the sweep-* commands: nothing but functions.

# section FILE NAME: the keys of the section, key=value one a line; status 1 if it is not there.
section() {
    [ -r "$1" ] && [ ! -d "$1" ] || return 1
    WANTED="[$2]" awk '
        function strip(s) { sub(/^[ \t\r]+/, "", s); sub(/[ \t\r]+$/, "", s); return s }
        { line = strip($0) }
        line == "" || line ~ /^#/ { next }
        line ~ /^\[.*\]$/ { here = (line == ENVIRON["WANTED"]); if (here) seen = 1; next }
        here && (at = index(line, "=")) { print strip(substr(line, 1, at - 1)) "=" strip(substr(line, at + 1)) }
        END { exit !seen }
    ' < "$1"
}

# number_of YYYY-MM-DD: sets `serial` to the number of the day; status 1 if there is no such day.
number_of() {
    local y=$((10#${1%%-*})) m d
    m=${1#*-} d=${1##*-}
    m=$((10#${m%-*})) d=$((10#$d))
    local -a longest=(0 31 28 31 30 31 30 31 31 30 31 30 31)
    if ((y % 400 == 0 || (y % 4 == 0 && y % 100 != 0))); then longest[2]=29; fi
    if ((m < 1 || m > 12 || d < 1)); then return 1; fi
    if ((d > longest[m])); then return 1; fi
    if ((m < 3)); then y=$((y - 1)) m=$((m + 12)); fi
    serial=$((365 * y + y / 4 - y / 100 + y / 400 + (153 * (m - 3) + 2) / 5 + d))
}

is_date() {
    case $1 in
    [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;;
    *) return 1 ;;
    esac
}

fail() {
    printf '%s: %s\n' "$command" "$2" >&2
    exit "$1"
}

# run COMMAND [-n] DIR DATE
run() {
    LC_ALL=C
    export LC_ALL
    local command=$1 service=${1#sweep-} text line
    shift
    local file=${SWEEP_CONF:-/app/etc/sweep.conf}
    text=$(section "$file" "$service" 2> /dev/null) || fail 78 "there is no section for $service in $file"
    local prefix= suffix= days= least= action= kept= order=
    while IFS= read -r line; do
        case $line in
        prefix=*) prefix=${line#*=} ;;
        suffix=*) suffix=${line#*=} ;;
        days=*) days=${line#*=} ;;
        least=*) least=${line#*=} ;;
        action=*) action=${line#*=} ;;
        kept=*) kept=${line#*=} ;;
        order=*) order=${line#*=} ;;
        esac
    done <<< "$text"
    case $days$least in
    '' | *[!0-9]*) fail 78 "days and least of $service are numbers" ;;
    esac
    days=$((10#$days)) least=$((10#$least))

    local dry=
    if [ "$1" = -n ]; then
        dry=1
        shift
    fi
    if [ $# -ne 2 ]; then
        printf 'usage: %s [-n] DIR DATE\n' "$command" >&2
        exit 64
    fi
    local where=$1 today serial
    is_date "$2" && number_of "$2" || fail 65 "bad date: $2"
    today=$serial
    [ -d "$where" ] || fail 66 "not a directory: $where"
    [ ! -e "$where/.hold" ] || fail 75 held

    local path base rest date n=0 skips=0
    local -a found=() age=()
    for path in "$where/$prefix-"*"$suffix"; do
        base=${path##*/}
        [ -f "$path" ] || continue
        rest=${base#"$prefix-"}
        date=${rest:0:10}
        rest=${rest:10}
        is_date "$date" || continue
        [[ $rest = "$suffix" || $rest = -*"$suffix" ]] || continue
        if number_of "$date"; then
            found[n]=$base
            age[n]=$((today - serial))
            n=$((n + 1))
        else
            printf 'skip %s\n' "$base"
            skips=$((skips + 1))
        fi
    done

    local i from=0 to=$n step=1 olds=0 keeps=0
    if [ "$order" = newest ]; then from=$((n - 1)) to=-1 step=-1; fi
    local -a away=()
    for ((i = from; i != to; i += step)); do
        if ((n - i <= least)) || ((age[i] <= days)); then
            keeps=$((keeps + 1))
            if [ "$kept" = list ]; then printf 'keep %s\n' "${found[i]}"; fi
        else
            olds=$((olds + 1))
            away+=("$where/${found[i]}")
            printf '%s%s %s\n' "${dry:+would }" "$action" "${found[i]}"
        fi
    done
    if [ -z "$dry" ] && [ "${#away[@]}" -gt 0 ]; then dispose "${away[@]}"; fi
    printf '%s: %s old, %s kept, %s skipped\n' "$service" "$olds" "$keeps" "$skips"
    exit 0
}

# dispose FILE...: according to `action`, below `where`.
dispose() {
    if [ "$action" = delete ]; then
        rm -f -- "$@"
    elif [ "$action" = compress ]; then
        gzip -nf -- "$@"
    elif [ "$action" = attic ]; then
        mkdir -p -- "$where/attic"
        mv -f -t "$where/attic" -- "$@"
    fi
}
LIB
cat > command.sh <<'CMD'
#!/bin/bash
. /app/lib/sweep.sh && run "${0##*/}" "$@"
CMD
printf '%s' '# wiki first: it is the odd one
[wiki]
prefix=wikilog
suffix=.tar
days=21
least=1
action=attic
kept=list
order=newest
[radio]
prefix=radiolog
suffix=.log
days=10
least=2
action=delete
kept=list
order=oldest
[ledger]
prefix=ledger
suffix=.log
days=30
least=2
action=compress
kept=hide
order=oldest' > sweep.conf
