# violates: "in results every prefix stands in its canonical form": redundant.txt has the prefix as it is written in routes.csv
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''                print(network)
''', r'''                print(next(row["prefix"] for row in csv.DictReader(open(NET + "routes.csv")) if ip_network(row["prefix"], strict=False) == network and row["next_hop"] == hop))
''')
VARIANT
