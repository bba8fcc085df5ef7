# violates: "the file must be the (resolved) root or lie below it": compares with root + "/", so the root itself (get .) is forbidden instead of not found, and nothing is allowed below --root /
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    if place != root and not place.startswith(os.path.join(root, "")):
''', r'''    if not place.startswith(root + os.sep):
''')
VARIANT
