# violates: "LOW is not above HIGH": a range of one port (80-80) is an error
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    low, _, high = item.partition(RANGE)
    low, high = port_number(low), port_number(high if RANGE in item else low)
    if low > high:
''', r'''    if RANGE not in item:
        return port_number(item), port_number(item)
    low, _, high = item.partition(RANGE)
    low, high = port_number(low), port_number(high)
    if not low < high:
''')
VARIANT
