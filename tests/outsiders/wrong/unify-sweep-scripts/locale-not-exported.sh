# violates: "print the same bytes on standard output and standard error": LC_ALL=C is only local to the library, not exported, so messages of rm, mv, gzip and mkdir come in the caller's locale (LANG=C.UTF-8 has other quotation marks)
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('sweep.sh', r'''    export LC_ALL=C
    local me=''', r'''    local LC_ALL=C
    local me=''')
VARIANT
