# violates: "`order`: which end the old and kept files are handled from" (and "the same bytes"): with newest the whole scan is turned round, so the skip lines come from the newest end, too
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''    for file in "$dir/${setting[prefix]}"-*"${setting[suffix]}"; do
        name=${file##*/}
''', r'''    local -a files=("$dir/${setting[prefix]}"-*"${setting[suffix]}")
    local k turned=()
    if [ "${setting[order]}" = newest ]; then
        for ((k = ${#files[@]} - 1; k >= 0; k--)); do turned+=("${files[k]}"); done
        files=("${turned[@]}")
    fi
    for file in "${files[@]}"; do
        name=${file##*/}
''')
sub('sweep.sh', r'''    local i n limit=$((count - 10#${setting[least]})) days=$((10#${setting[days]}))
''', r'''    local i n newest days=$((10#${setting[days]})) least=$((10#${setting[least]}))
''')
sub('sweep.sh', r'''        i=$n
        [ "${setting[order]}" = oldest ] || i=$((count - 1 - n))
        if ((i >= limit || ages[i] <= days)); then
''', r'''        i=$n
        newest=$((count - 1 - n))
        [ "${setting[order]}" = oldest ] || newest=$n
        if ((newest < least || ages[i] <= days)); then
''')
sub('sweep.sh', r'''Finds the files of the service, oldest first, with''', r'''Finds the files of the service, in the order of its section, with''')
VARIANT
