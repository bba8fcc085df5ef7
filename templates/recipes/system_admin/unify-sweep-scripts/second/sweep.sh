# Shell around two gawk programs: one reads a section, the other decides about every file.

section() {
    gawk -v want="[$2]" '
        { gsub(/^[ \t]+|[ \t]+$/, "") }
        /^#/ || !length { next }
        /^\[.*\]$/ { here = ($0 == want); found = found || here; next }
        here { at = index($0, "="); key = substr($0, 1, at - 1); value = substr($0, at + 1)
               sub(/[ \t]+$/, "", key); sub(/^[ \t]+/, "", value); print key "=" value }
        END { exit !found }' "$1"
}

plan() {
    case $1 in /*) ;; *) set -- "./$1" "$2" "$3" ;; esac
    find "${1%/}/" -mindepth 1 -maxdepth 1 -xtype f -printf '%f\0' | sort -z | SETTINGS=$3 PINS=$1/.pins gawk -v RS='\0' -v now="$2" '
        function day(text) {
            stamp = mktime(substr(text, 1, 4) " " substr(text, 6, 2) " " substr(text, 9, 2) " 00 00 00", 1)
            return strftime("%Y-%m-%d", stamp, 1) == text ? stamp / 86400 : "none"
        }
        function tell(verdict, name) { printf "%s %s%c", verdict, name, 0 }
        BEGIN {
            n = split(ENVIRON["SETTINGS"], lines, "\n")
            for (i = 1; i <= n; i++) { at = index(lines[i], "="); c[substr(lines[i], 1, at - 1)] = substr(lines[i], at + 1) }
            if (day(now) == "none") exit 1
            today = day(now); n = 0
            days = c["days"] + 0; head = c["prefix"] "-"; tail = c["suffix"]
            if (c["pins"] == "obey") { RS = "\n"; while ((getline line < ENVIRON["PINS"]) > 0) pinned[line]; RS = "\0" }
        }
        {
            if (substr($0, 1, length(head)) != head) next
            rest = substr($0, length(head) + 1)
            if (length(rest) < 10 + length(tail) || substr(rest, length(rest) - length(tail) + 1) != tail) next
            tag = substr(rest, 11, length(rest) - length(tail) - 10)
            rest = substr(rest, 1, 10)
            if (rest !~ /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/ || tag !~ /^(-|$)/) next
            at = day(rest)
            if (at == "none" || (c["future"] == "skip" && at > today)) { tell("skip", $0); next }
            name[++n] = $0; age[n] = today - at
        }
        END {
            for (k = 1; k <= n; k++) {
                i = c["order"] == "newest" ? n + 1 - k : k
                stay = i > n - c["least"] || age[i] < days || (age[i] == days && c["boundary"] != "old") || (name[i] in pinned)
                if (!stay) tell(c["action"], name[i])
                else tell(c["kept"] == "hide" ? "hush" : "keep", name[i])
            }
        }'
}

main() {
    export LC_ALL=C
    me=$(basename -- "$0")
    name=${me#sweep-}
    say='' settings=''
    [ "${1-}" != -n ] || { say='would '; shift; }
    if [ $# != 2 ]; then echo "usage: $me [-n] DIR DATE" >&2; exit 64; fi
    if ! settings=$(section "${SWEEP_CONF:-/app/etc/sweep.conf}" "$name" 2>/dev/null); then
        echo "$me: there is no section for $name" >&2
        exit 78
    fi
    if [[ $2 != [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9] ]] || ! date -d "$2" > /dev/null 2>&1; then echo "$me: bad date: $2" >&2; exit 65; fi
    if [ ! -d "$1" ]; then echo "$me: not a directory: $1" >&2; exit 66; fi
    if [ -e "$1/.hold" ] && ! echo "$settings" | grep -qx hold=ignore; then echo "$me: held" >&2; exit 75; fi
    old=0 kept=0 skipped=0 away=() what=''
    while read -r -d '' verdict file; do
        case $verdict in
            skip) skipped=$((skipped + 1)); echo "skip $file" ;;
            keep) kept=$((kept + 1)); echo "keep $file" ;;
            hush) kept=$((kept + 1)) ;;
            *) old=$((old + 1)); echo "$say$verdict $file"; [ -n "$say" ] || { what=$verdict; away+=("$1/$file"); } ;;
        esac
    done < <(plan "$1" "$2" "$settings")
    [ -z "$what" ] || "do_$what" "$1"
    echo "$name: $old old, $kept kept, $skipped skipped"
    if [ $old = 0 ]; then exit "$(echo "$settings" | sed -n 's/^idle_status=//p' | grep . || echo 0)"; fi
    exit 0
}

do_delete() { rm -f -- "${away[@]}"; }
do_attic() { mkdir -p -- "$1/attic"; mv -f -t "$1/attic" -- "${away[@]}"; }
do_compress() { gzip -nf -- "${away[@]}"; }
