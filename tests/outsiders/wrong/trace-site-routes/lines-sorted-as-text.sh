# violates: "one row for each unusable route, sorted by `line`, its line number in `tables.txt` counting from 1." - unusable.csv is sorted by the line number as text (100 before 16); hits.csv is right
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', '    for route in routes:\n        if route["reason"]:\n            print(',
    '    for route in sorted(routes, key=lambda route: str(route["line"])):\n        if route["reason"]:\n            print(')
E
