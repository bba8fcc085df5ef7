# violates: "Two earlier rules that only together cover a rule do not make it dead": port ranges of earlier rules are put together
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''            if any(covers(earlier, rule) for earlier in rules[:place]):
''', r'''            whole = lambda r: (0, 65535) if not r[5] else r[4]
            port, top = whole(rule)
            for low, high in sorted(whole(r) for r in rules[:place] if covers((*r[:4], (0, 65535), False), rule)):
                if low <= port <= high:
                    port = high + 1
            if port > top:
''')
VARIANT
