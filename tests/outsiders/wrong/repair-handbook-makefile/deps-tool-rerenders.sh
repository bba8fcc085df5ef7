# violates: "(`include: NAME` stands for `parts/NAME.txt`) has changed since; only then." - all pages are rendered again after a change of tools/deps.sh, too
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', 'PAGE_INPUTS += tools/render.awk\n',
    'PAGE_INPUTS += tools/render.awk tools/deps.sh\n')
E
