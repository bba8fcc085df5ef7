# violates: "Links on the shelf that lead to other places on the shelf are fine, whatever those are called": applies the rule of names to the resolved place as well, so a link to a hidden place of the shelf is forbidden
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''        raise Forbidden("it lies outside")
    return place
''', r'''        raise Forbidden("it lies outside")
    if place != root:
        check(os.path.relpath(place, root))
    return place
''')
VARIANT
