# violates: "print the same bytes on … standard error": mv is not tried any more when mkdir fails (DIR/attic is a file), so its complaint is missing
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''        mkdir -p -- "$dir/attic"
        mv -f -t "$dir/attic" -- "${gone[@]}"
''', r'''        mkdir -p -- "$dir/attic" && mv -f -t "$dir/attic" -- "${gone[@]}"
''')
VARIANT
