# violates: "`readings` is their number and `MJ` their sum in MJ with exactly three decimals." - zeros at the end of MJ are cut off, so that 0.000 is written as 0
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', 'print(site, name, count, thousandth(total), sep=",")',
    'print(site, name, count, thousandth(total).rstrip("0").rstrip("."), sep=",")')
E
