# violates: "print the same bytes on standard output … for any DIR, DATE and file names": messages go through printf as its format, so % and backslashes in a file name (or in DATE, DIR) are interpreted
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''# Prints a complaint and ends with status $1.
sweep_die() {
    echo "$me: $2" >&2
''', r'''# Prints one line.
sweep_say() {
    printf "$1\n"
}

# Prints a complaint and ends with status $1.
sweep_die() {
    sweep_say "$me: $2" >&2
''')
sub('sweep.sh', r'''echo "skip $name"''', r'''sweep_say "skip $name"''')
sub('sweep.sh', r'''echo "keep ${names[i]}"''', r'''sweep_say "keep ${names[i]}"''')
sub('sweep.sh', r'''echo "would ${setting[action]} ${names[i]}"''', r'''sweep_say "would ${setting[action]} ${names[i]}"''')
sub('sweep.sh', r'''            echo "${setting[action]} ${names[i]}"''', r'''            sweep_say "${setting[action]} ${names[i]}"''')
VARIANT
