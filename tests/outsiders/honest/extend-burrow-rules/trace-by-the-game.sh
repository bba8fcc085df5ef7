# differs: the game keeps the trace, the slide is a method of its own, arrows are in a table with their steps, --trace as LEVEL or MOVES gives status 64 as well, the usage message is another, RULES.md describes the new tiles
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('engine.py', 'TILES = "#.@$k+XG~^v<>"\nARROWS = {"^": "U", "v": "D", "<": "L", ">": "R"}\n', 'ICE = "~"\nARROWS = {"^": STEPS["U"], "v": STEPS["D"], "<": STEPS["L"], ">": STEPS["R"]}\nTILES = "#.@$k+XG" + ICE + "".join(ARROWS)\n')
sub('engine.py', """        if move in STEPS:
            while self.step(move) and self.result == "open" and self.cells[self.row][self.column] == "~":
                pass
        if self.result == "open":
            self.move_guards()
""", """        if move in STEPS:
            self.go(move)
        if self.result == "open":
            self.move_guards()
        self.trace.append(f"{self.turns} {move} {self.row + 1} {self.column + 1} {self.coins} {self.keys}")

    def go(self, move):
        # One step, and all that follow from it on ice.
        while self.step(move) and self.result == "open":
            if self.under() != ICE:
                break

    def under(self):
        return self.cells[self.row][self.column]
""")
sub('engine.py', 'ARROWS[tile] != move', 'ARROWS[tile] != STEPS[move]')
sub('engine.py', '        self.result = "open"\n        for', '        self.result = "open"\n        self.trace = []\n        for')
sub('burrow', """    traced = words[1:2] == ["--trace"]
    if traced:
        del words[1]
    if len(words) != 3 or words[0] != "play" or "--trace" in words:
        print("usage: burrow play [--trace] LEVEL MOVES", file=sys.stderr)
""", """    traced = words[:2] == ["play", "--trace"]
    if traced:
        words = ["play"] + words[2:]
    if len(words) != 3 or words[0] != "play" or "--trace" in words:
        print("burrow: wrong arguments\\nburrow play LEVEL MOVES\\nburrow play --trace LEVEL MOVES", file=sys.stderr)
""")
sub('burrow', """        if traced:
            print(game.turns, move, game.row + 1, game.column + 1, game.coins, game.keys)
    print(game.report())
""", """    print("\\n".join([*game.trace, game.report()] if traced else [game.report()]))
""")
E
cat >> solve.sh <<'S'
python3 - <<'E'
text = open("/app/RULES.md").read()
text = text.replace("| `G` | guard, on floor |\n", "| `G` | guard, on floor |\n| `~` | ice: the player goes on in the same direction in the same turn |\n| `^` `v` `<` `>` | arrow: can be stepped onto only in its direction |\n")
open("/app/RULES.md", "w").write(text)
E
S
