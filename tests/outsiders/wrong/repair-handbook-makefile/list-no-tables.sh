# violates: "If nothing has changed, `make` writes none of these files." - without any table `ls` fails, the list counts as new each time, and the index and SUMS are written by every make
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', '\t@[ "$$(cat $@ 2>&1)" = "$(strip $(PAGES) / $(TABLES))" ] || echo $(PAGES) / $(TABLES) > $@',
    '\t@ls pages/*.txt data/*.tsv > $@.new 2> /dev/null && cmp -s $@.new $@ || mv $@.new $@')
E
