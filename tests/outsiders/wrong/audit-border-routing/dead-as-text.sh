# violates: "one a line, ascending": the numbers are sorted as text (13 before 4)
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''        for place, rule in enumerate(rules):
            if any(covers(earlier, rule) for earlier in rules[:place]):
                print(rule[0])
''', r'''        dead = [str(rule[0]) for place, rule in enumerate(rules) if any(covers(earlier, rule) for earlier in rules[:place])]
        print("\n".join(sorted(dead)))
''')
VARIANT
