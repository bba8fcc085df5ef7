# violates: "never valid later, whatever SECONDS are": takes SECONDS of more than 30 digits for far away even if they are leading zeros
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    if now >= int(expires):
''', r'''    if len(expires) <= 30 and now >= int(expires):
''')
VARIANT
