# violates: "For guards (and for whatever else needs plain floor) a new tile is never plain floor." - a guard walks onto < or > in the direction to which it points
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('engine.py', '            if self.is_free(row, column + along):\n',
    '            if self.is_free(row, column + along, "><"[along < 0]):\n')
sub('engine.py', '    def is_free(self, row, column):\n        """Whether a cell is plain floor without a guard."""\n        return self.cells[row][column] == "." and',
    '    def is_free(self, row, column, arrow):\n        """Whether a cell is plain floor, or an arrow that points ahead, without a guard."""\n        return self.cells[row][column] in (".", arrow) and')
E
