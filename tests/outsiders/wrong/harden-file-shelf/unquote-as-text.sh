# violates: "what comes out, read as UTF-8, is the name … bytes that are not UTF-8, are forbidden": decodes text with unquote(errors="strict"), which lets raw bytes in the REQUEST that are not UTF-8 through (they name such a file)
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''        name = unquote_to_bytes(os.fsencode(request)).decode("utf-8")
''', r'''        name = unquote(request, errors="strict")
''')
sub('solve.sh', r'''import unquote_to_bytes''', r'''import unquote''')
VARIANT
