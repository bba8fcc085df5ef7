# differs: each trace line is printed at once (flushed), what is in the way is told by a method, a word that begins with -- in the place of LEVEL or MOVES is a wrong argument
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('engine.py', """            while self.step(move) and self.result == "open" and self.cells[self.row][self.column] == "~":
                pass
""", """            sliding = True
            while sliding:
                sliding = self.step(move) and self.result == "open" and self.cells[self.row][self.column] == "~"
""")
sub('engine.py', """        if tile in "#":
            return False
        if tile in ARROWS and ARROWS[tile] != move:
            return False
        if tile == "+":
            if self.keys == 0:
                return False
            self.keys -= 1
""", """        if self.in_the_way(tile, move):
            return False
        if tile == "+":
            self.keys -= 1
""")
sub('engine.py', """    def enter(self, tile):
""", """    def in_the_way(self, tile, move):
        return tile == "#" or tile == "+" and self.keys == 0 or ARROWS.get(tile, move) != move

    def enter(self, tile):
""")
sub('burrow', """    if len(words) != 3 or words[0] != "play" or "--trace" in words:
""", """    if len(words) != 3 or words[0] != "play" or any(word.startswith("--") for word in words):
""")
sub('burrow', 'game.coins, game.keys)', 'game.coins, game.keys, flush=True)')
E
