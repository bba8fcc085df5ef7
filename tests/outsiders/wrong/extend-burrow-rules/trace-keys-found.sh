# violates: "coins picked up so far, and keys in hand." - the last number is that of the keys picked up so far, used ones included
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('engine.py', 'self.turns = self.coins = self.keys = self.total = 0',
    'self.turns = self.coins = self.keys = self.found = self.total = 0')
sub('engine.py', '            self.keys += 1\n',
    '            self.keys += 1\n            self.found += 1\n')
sub('burrow', 'game.coins, game.keys)',
    'game.coins, game.found)')
E
