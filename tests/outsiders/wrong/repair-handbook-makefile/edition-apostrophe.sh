# violates: "`TITLE` and `EDITION` come from `config.mk`; there may be an apostrophe in them." - an apostrophe in EDITION (not in TITLE) breaks the shell command
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', '-v edition="$$EDITION"',
    "-v edition='$(EDITION)'")
E
