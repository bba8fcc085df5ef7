# violates: "the numbers of all rules that can never match anything …; one a line": a rule is listed once for each earlier rule that covers it
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''            if any(covers(earlier, rule) for earlier in rules[:place]):
                print(rule[0])
''', r'''            for earlier in rules[:place]:
                if covers(earlier, rule):
                    print(rule[0])
''')
VARIANT
