# violates: "`from except ADDRESS` and `to except ADDRESS`" with "A line that is none of this stops the program": except may be repeated and turns round each time
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    word = take(words)
    negated = word == NEGATION
    if negated:
        word = take(words)
''', r'''    word, negated = take(words), False
    while word == NEGATION:
        word, negated = take(words), not negated
''')
VARIANT
