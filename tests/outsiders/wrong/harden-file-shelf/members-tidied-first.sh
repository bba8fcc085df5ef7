# violates: "Each member must be … with a name that rules 2 and 3 allow" (rule 2: `..` "wherever it would lead"): names of members are put in normal form before they are checked, so a/../b and an empty name pass
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    place = paths.locate(root, member.name)
    if os.path.islink(os.path.join(root, os.path.normpath(member.name))):
''', r'''    name = os.path.normpath(member.name)
    place = paths.locate(root, name)
    if os.path.islink(os.path.join(root, name)):
''')
VARIANT
