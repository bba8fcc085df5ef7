# violates: "**The old scripts** stay at their places for those who call them by hand, but only hand over to the tool: each one is a link or an executable script with no more than three lines that are neither blank nor comments, and it knows nothing but its name" - arguments, which the old scripts ignore, are passed on as further names: `rotate-vpn.sh now` fails with status 1, `rotate-vpn.sh proxy` rotates proxy as well
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', "exec /app/bin/rotate %s\\n' ",
    'exec /app/bin/rotate %s "$@"\\n\' ')
E
