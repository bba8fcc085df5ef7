# violates: "nothing in the file is ever run or expanded": days and least go into arithmetic unchecked, which runs what is in `x[$(…)]`
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''    # Numbers are checked before they are used in arithmetic, which would run code in them.
    local key
    for key in days least; do
        [[ ${setting[$key]} =~ ^[0-9]+$ ]] || sweep_die 78 "$key in section [$service] of $conf is not a number"
    done
''', r'''''')
sub('sweep.sh', r'''limit=$((count - 10#${setting[least]})) days=$((10#${setting[days]}))''', r'''limit=$((count - setting[least])) days=$((setting[days]))''')
VARIANT
