# violates: "it prints one line `TURN MOVE ROW COLUMN COINS KEYS` for each turn that is played, as it is at the end of that turn" - the turn in which a guard catches the player while he stands still or after his step (in the guards' move) has no line
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('burrow', '        if traced:\n',
    '        if traced and (game.result != "caught" or game.walked_in):\n')
sub('engine.py', '        if any(guard[:2] == [self.row, self.column] for guard in self.guards):\n            self.result = "caught"\n',
    '        if any(guard[:2] == [self.row, self.column] for guard in self.guards):\n            self.result = "caught"\n            self.walked_in = True\n')
sub('engine.py', '        self.result = "open"\n',
    '        self.result = "open"\n        self.walked_in = False\n')
E
