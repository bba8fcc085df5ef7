# violates: "What rules 1 to 3 forbid is forbidden whether it exists or not": get looks for the file before it looks where it lies, so a missing file behind a link out of the shelf is not found instead of forbidden
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''def get(root, request):
    place = paths.locate(root, paths.decode(request))
    if not os.path.isfile(place):
''', r'''def get(root, request):
    name = paths.decode(request)
    paths.check(name)
    if not os.path.exists(os.path.join(root, name)):
        raise paths.NotFound(request)
    place = paths.locate(root, name)
    if not os.path.isfile(place):
''')
VARIANT
