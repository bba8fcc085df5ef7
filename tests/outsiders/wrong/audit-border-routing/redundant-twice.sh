# violates: "the prefixes of all routes in force that change nothing, one a line": goes through the lines of routes.csv, so a network with several lines is listed several times
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('audit.py', r'''        for network, hop in routes.items():
            wider''', r'''        for row in csv.DictReader(open(NET + "routes.csv")):
            network = ip_network(row["prefix"], strict=False)
            hop = routes[network]
            wider''')
VARIANT
