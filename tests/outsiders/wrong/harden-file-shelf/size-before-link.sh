# violates: "Forbidden comes before too large": the size is checked before the symbolic link in the last place, so a long body onto a link is too large instead of forbidden
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    if os.path.islink(os.path.join(root, os.path.normpath(name))):
        raise paths.Forbidden("a link is never written")
    if len(body) > LIMIT:
        raise TooLarge(f"{len(body)} bytes, at most {LIMIT}")
''', r'''    if len(body) > LIMIT:
        raise TooLarge(f"{len(body)} bytes, at most {LIMIT}")
    if os.path.islink(os.path.join(root, os.path.normpath(name))):
        raise paths.Forbidden("a link is never written")
''')
VARIANT
