# violates: "`busiest`, the router that is in the paths of most flows (a flow counts once; of equals the first in alphabetical order)" - counts a router that a loop meets twice two times
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', 'for router in set(path))',
    'for router in path)')
E
