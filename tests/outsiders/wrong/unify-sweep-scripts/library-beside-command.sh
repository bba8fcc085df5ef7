# violates: "through PATH, through a link of the same name or as an argument of `bash`": finds the library from $0, which has no folder with `bash sweep-ledger` (found through PATH) and another folder with a hard link
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('command.sh', r'''source /app/lib/sweep.sh''', r'''source "$(dirname "$(readlink -f "$0")")/../lib/sweep.sh" || exit''')
VARIANT
