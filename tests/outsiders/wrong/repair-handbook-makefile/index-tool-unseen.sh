# violates: "The index and the checksums are up to date after every `make`" - the index is not made again after a change of tools/index.sh
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', 'build/index.html: $(PAGES:%=pages/%.txt) tools/index.sh config.mk build/.list | build',
    'build/index.html: $(PAGES:%=pages/%.txt) config.mk build/.list | build')
E
