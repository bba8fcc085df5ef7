# violates: "how many flows it decided for anywhere on their way, 0 included." - after a loop the router that is met again decides once more, so that its route has two hits for the one flow
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', '        if follower in path:\n',
    '        if follower in path:\n            hits[decide(follower, destination)["line"]] += 1\n')
E
