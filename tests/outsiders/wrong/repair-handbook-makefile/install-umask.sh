# violates: "as ordinary files with mode 644" - copies with cp, so that the modes are those of build/ and with a umask of 077 or 027 the installed files are not 644
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', '\tinstall -m 644 $(HTML) build/index.html build/SUMS $(SHARE)\n\t$(if $(TABLES),install -m 644 $(TABLE_HTML) $(SHARE)/tables)',
    '\tcp -f $(HTML) build/index.html build/SUMS $(SHARE)\n\t$(if $(TABLES),cp -f $(TABLE_HTML) $(SHARE)/tables)')
E
