# violates: "Each of these steps is a step like any other (it picks up coins and keys, uses keys on doors, meets guards and so on)." - a slide ends in front of a closed door, also with a key in hand
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('engine.py', '            while self.step(move) and self.result == "open" and self.cells[self.row][self.column] == "~":\n                pass\n',
    '            while self.step(move) and self.result == "open" and self.cells[self.row][self.column] == "~":\n                row, column = self.row + STEPS[move][0], self.column + STEPS[move][1]\n                if self.cells[row][column] == "+":\n                    break\n')
E
