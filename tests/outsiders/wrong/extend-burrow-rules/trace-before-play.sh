# violates: "In any other place, twice or cut short, `--trace` is a wrong argument." - `burrow --trace play LEVEL MOVES` is accepted
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('burrow', '    traced = words[1:2] == ["--trace"]\n    if traced:\n        del words[1]\n',
    '    traced = "--trace" in words[:2]\n    if traced:\n        words.remove("--trace")\n')
E
