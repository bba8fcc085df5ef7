# violates: "What it does for honest requests must stay as it is" and "Each member must be a regular file or a folder": takes type 0 only for a regular file, so archives of the old format (tar --format=v7, type NUL) are forbidden
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    if not member.isfile() and not member.isdir():
''', r'''    if member.type not in (tarfile.REGTYPE, tarfile.DIRTYPE):
''')
VARIANT
