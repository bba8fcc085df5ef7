# violates: "The first `=` separates" and "Values are plain text, whatever characters are in them": splits with IFS="=" read, which swallows an = at the end of a value
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''            sweep_trim "${line%%=*}"
            key=$trimmed
            sweep_trim "${line#*=}"
            setting[$key]=$trimmed
''', r'''            IFS== read -r key value <<< "$line"
            sweep_trim "$key"
            key=$trimmed
            sweep_trim "$value"
            setting[$key]=$trimmed
''')
sub('sweep.sh', r'''local line key inside=no found=1''', r'''local line key value inside=no found=1''')
VARIANT
