# violates: "A connected network is better than any route; then the lower metric is better" - a blackhole for a connected network's own prefix is not outranked by it
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', 'if key in best or any((',
    'if key in best or route["action"] == "via" and any((')
E
