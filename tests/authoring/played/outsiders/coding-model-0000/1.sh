#!/bin/bash
# Violates: "For valid files, stdout, stderr and status are byte for byte what the present script gives, for every KEY"
# Shown by: a valid file with [server] and host = a, asked for KEY 'server.h*' (or 'server.hos?', 'server.[h]ost'):
#   it must say 'no such key: server.h*' with status 1, but KEY is taken as a pattern and 'a' is printed with status 0
set -euo pipefail
# Writing through the existing file keeps its mode (executable).
cat > /app/confget/confget <<'CONFGET'
#!/bin/bash
# confget FILE KEY - print one value of a config file (format: FORMAT.md)
#
# KEY is section.key. FILE is read once, front to back, so a pipe will do:
#     make-config | confget /dev/stdin server.port
# Nothing is printed before the whole of FILE has been checked.
#
# Status: 0 value printed, 1 no such key, 2 FILE breaks FORMAT.md,
#         3 wrong usage or FILE cannot be read
#
# 2015-03  first version
# 2016-11  CRLF, for the files from the tills
# 2019-06  values over several lines
# 2021-02  the same key twice is an error now

LC_ALL=C

if (( $# != 2 )); then
    echo "usage: confget FILE KEY" >&2
    exit 3
fi
file=$1
want=$2

if [[ -d $file || ! -r $file ]]; then
    printf 'confget: %s: cannot read\n' "$file" >&2
    exit 3
fi

blank=$' \t'
name='^[A-Za-z][A-Za-z0-9_-]*$'
quoted='^"[^"]*"$'

lineno=0
section=
entry=
entry_line=0
open=0
found=0
result=
declare -A seen

die() {
    printf 'confget: %s:%d: %s\n' "$file" "$1" "$2" >&2
    exit 2
}

trim() {
    REPLY=$1
    REPLY=${REPLY#"${REPLY%%[!$blank]*}"}
    REPLY=${REPLY%"${REPLY##*[!$blank]}"}
}

split_entry() {
    trim "${entry%%=*}"
    key=$REPLY
    trim "${entry#*=}"
    value=$REPLY
}

check_entry() {
    [[ $entry == *=* ]] || die "$entry_line" "missing '='"
    split_entry
    [[ $key =~ $name ]] || die "$entry_line" "bad key name"
    [[ -n $section ]] || die "$entry_line" "key outside section"
    if [[ $value == '"'* ]]; then
        [[ $value =~ $quoted ]] || die "$entry_line" "bad quoting"
    fi
    [[ -z ${seen[$section.$key]} ]] || die "$entry_line" "duplicate key"
    seen[$section.$key]=1
}

take_entry() {
    [[ $section.$key == $want ]] || return
    if [[ $value =~ $quoted ]]; then
        value=${value#?}
        value=${value%?}
    fi
    result=$value
    found=1
}

end_entry() {
    (( open )) || return
    check_entry
    take_entry
    open=0
}

while IFS= read -r line || [[ -n $line ]]; do
    lineno=$(( lineno + 1 ))
    line=${line%$'\r'}
    trim "$line"
    text=$REPLY

    case $text in
        '')
            end_entry
            continue ;;
        '#'*)
            continue ;;
    esac

    case $line in
        [$blank]*)
            (( open )) || die "$lineno" "stray continuation"
            entry+=" $text" ;;
        '['*)
            end_entry
            [[ $text == *']' ]] || die "$lineno" "bad section header"
            section=${text#'['}
            section=${section%']'}
            [[ $section =~ $name ]] || die "$lineno" "bad section header" ;;
        *)
            end_entry
            entry=$text
            entry_line=$lineno
            open=1 ;;
    esac
done < "$file"
end_entry

if (( ! found )); then
    printf 'confget: %s: no such key: %s\n' "$file" "$want" >&2
    exit 1
fi
printf '%s\n' "$result"
exit 0
CONFGET
chmod 755 /app/confget/confget
