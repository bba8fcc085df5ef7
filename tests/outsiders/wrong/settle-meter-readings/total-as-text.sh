# violates: "and the number `total_mj`, the sum over everything in MJ, right to three decimals." - total_mj is a string, not a number
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', 'f\', "total_mj": {thousandth(total)}\' + "}")',
    'f\', "total_mj": "{thousandth(total)}"\' + "}")')
E
