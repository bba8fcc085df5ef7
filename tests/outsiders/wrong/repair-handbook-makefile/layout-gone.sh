# violates: "leaves no `build/NAME.html` or `build/tables/NAME.html` for it, not even one from an earlier `make`" - if layout/header.html, layout/footer.html or tools/render.awk is missing, make stops with 'No rule to make target' and all the pages of the earlier make stay
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('Makefile', '# Without one of these no page can be rendered, and none may stay.\n$(filter layout/% tools/%,$(PAGE_INPUTS)):\n\t@$(RM) $(HTML)\n\t@echo "$@ is missing" >&2; false\n\n',
    '')
E
