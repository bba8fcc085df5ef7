# violates: "step by step, until a step is not possible or leads onto something that is not ice, or the game is over." - a coin or key at the end of the ice is picked up, but the slide goes on beyond it
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('engine.py', '            while self.step(move) and self.result == "open" and self.cells[self.row][self.column] == "~":\n                pass\n',
    '            while self.step(move) and self.result == "open" and self.slides:\n                pass\n')
sub('engine.py', '        self.row, self.column = row, column\n        self.enter(tile)\n        return True\n',
    '        self.slides = tile == "~" or tile in "$k" and self.cells[self.row][self.column] == "~"\n        self.row, self.column = row, column\n        self.enter(tile)\n        return True\n')
E
