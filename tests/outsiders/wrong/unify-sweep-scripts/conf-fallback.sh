# violates: "its value is the path of the file to read instead of `/app/etc/sweep.conf`": falls back to /app/etc/sweep.conf when SWEEP_CONF names no regular file (missing file, pipe, /dev/fd/N)
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''    local -A setting=()
''', r'''    local -A setting=()
    [ -f "$conf" ] || conf=/app/etc/sweep.conf
''')
VARIANT
