# violates: "Everything else stays as it is: other levels play as before, and the output without `--trace` has the same form." - an unknown move is noticed only when its turn comes: after the end of the game it goes unseen (status 0 instead of 2), and with --trace the turns before it are printed
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('burrow', '    for move in moves:\n        if move not in "UDLRW":\n            print(f"{record}: unknown move {move!r}", file=sys.stderr)\n            return 2\n    for move in moves:\n        if game.result != "open":\n            break\n',
    '    for move in moves:\n        if game.result != "open":\n            break\n        if move not in "UDLRW":\n            print(f"{record}: unknown move {move!r}", file=sys.stderr)\n            return 2\n')
E
