# violates: "Neither `put` nor `unpack` writes through a symbolic link in the last place of a name" (with "Segments that are empty or a single dot mean nothing"): looks at the name as it stands, so link/ or link/. is followed
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    if os.path.islink(os.path.join(root, os.path.normpath(name))):
''', r'''    if os.path.islink(os.path.join(root, name)):
''')
sub('solve.sh', r'''    if os.path.islink(os.path.join(root, os.path.normpath(member.name))):
''', r'''    if os.path.islink(os.path.join(root, member.name)):
''')
VARIANT
