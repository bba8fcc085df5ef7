# violates: "copies the pages, `index.html` and `SUMS` (no other files) to `$(DESTDIR)$(PREFIX)/share/port-manual/`" - installs from within build/, so that `make install DESTDIR=stage` puts everything below build/stage instead of stage
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', '\tinstall -d $(SHARE)/tables\n\tinstall -m 644 $(HTML) build/index.html build/SUMS $(SHARE)\n\t$(if $(TABLES),install -m 644 $(TABLE_HTML) $(SHARE)/tables)',
    '\tcd build && install -d $(SHARE)/tables\n\tcd build && install -m 644 $(HTML:build/%=%) index.html SUMS $(SHARE)\n\t$(if $(TABLES),cd build && install -m 644 $(TABLE_HTML:build/%=%) $(SHARE)/tables)')
E
