# violates: "with the names of all pages and all tables, each in alphabetical order and separated by blanks" - sorts file names before the suffix is cut off, so that `tides-2` comes before `tides`
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', 'PAGES := $(sort $(patsubst pages/%.txt,%,$(wildcard pages/*.txt)))',
    'PAGES := $(patsubst pages/%.txt,%,$(sort $(wildcard pages/*.txt)))')
sub('Makefile', 'TABLES := $(sort $(patsubst data/%.tsv,%,$(wildcard data/*.tsv)))',
    'TABLES := $(patsubst data/%.tsv,%,$(sort $(wildcard data/*.tsv)))')
E
