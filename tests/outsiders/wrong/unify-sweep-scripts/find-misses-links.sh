# violates: "leave the same files behind, for any DIR, DATE and file names": collects with find -type f, so symbolic links to files (and a DIR that is itself a link) are no longer swept
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''    for file in "$dir/${setting[prefix]}"-*"${setting[suffix]}"; do
        name=${file##*/}
        [ -f "$file" ] || continue
''', r'''    local -a found=()
    mapfile -d '' -t found < <(find "$dir" -maxdepth 1 -type f -print0 | sort -z)
    for file in "${found[@]}"; do
        name=${file##*/}
''')
VARIANT
