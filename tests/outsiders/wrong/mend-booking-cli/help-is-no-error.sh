# violates: "An unknown command or a wrong number of arguments: the usage on standard error, exit status 64": --help, -h and help print the usage on standard output with status 0
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/cli.py", """    fewest, most =""", """    if command in ("-h", "--help", "help"):
        print(USAGE)
        return 0
    fewest, most =""")
PY
SH
