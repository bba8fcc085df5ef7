# differs: total_mj is a float that is off by a rounding error far below three decimals, summary.json is indented and has no line end, /app/out is made anew, the program stays in /app/settle.py
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('settle.py', '    print(json.dumps({\n',
    '    sys.stdout.write(json.dumps({\n')
sub('settle.py', '    })[:-1] + f\', "total_mj": {thousandth(total)}\' + "}")',
    '        "total_mj": sum(reading["base"] / 1000 for reading in readings.values()),\n    }, indent="\\t", sort_keys=True))')
E
sed -i 's,^mkdir -p /app/out,rm -rf /app/out\nmkdir /app/out\ncp /solution/settle.py /app/settle.py,' solve.sh
