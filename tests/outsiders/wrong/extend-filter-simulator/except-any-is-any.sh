# violates: "`from except ADDRESS` and `to except ADDRESS` match what ADDRESS … does not match": `any` is treated as no condition at all, so except any matches everything instead of nothing
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''        return any(address in network for network in self.networks) != self.negated
''', r'''        return self.networks is None or any(address in network for network in self.networks) != self.negated
''')
sub('rules.py', r'''    return Ends(networks("0.0.0.0/0" if word == "any" else word, groups), negated)
''', r'''    return Ends(None if word == "any" else networks(word, groups), negated)
''')
VARIANT
