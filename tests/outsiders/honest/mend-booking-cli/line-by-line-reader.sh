# differs: reads the file line by line, writes the new line by one write of bytes, other error and usage messages, MINUTES or times on the command line that are none give the usage and 64 (open in the text), usage merged from stretches
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

store = pathlib.Path("/app/booklib/store.py")
text = store.read_text()
head, _ = text.split("def load(path):")
head = head.replace("import re\n", "import io\nimport os\nimport re\n")
store.write_text(head + '''def load(path):
    with open(path, "rb") as source:
        lines = source.read().decode("utf-8").split("\\n")
    bookings = []
    for place, line in enumerate(lines):
        line = line[:-1] if line.endswith("\\r") else line
        if place == 0 or line == "":
            continue
        try:
            (row,) = csv.reader([line])
            bookings.append(parse(row))
        except ValueError as problem:
            raise BadRow(f"{path}:{place + 1}: not a booking ({problem})") from None
    return bookings


def append(path, bookings, name, date, start, end, holder):
    highest = 0
    for booking in bookings:
        highest = max(highest, int(booking.id[1:]))
    id = "B" + str(highest + 1).zfill(3)
    line = io.StringIO()
    csv.writer(line, lineterminator="\\n").writerow([id, name, date, start, end, "confirmed", holder])
    with open(path, "r+b") as sink:
        lead = b""
        if sink.seek(0, os.SEEK_END):
            sink.seek(-1, os.SEEK_END)
            lead = b"" if sink.read(1) == b"\\n" else b"\\n"
        sink.seek(0, os.SEEK_END)
        sink.write(lead + line.getvalue().encode("utf-8"))
    return id
''')
swap("booklib/cli.py", '''USAGE = """usage: bookings conflicts FILE
       bookings usage FILE
       bookings free FILE COURT DATE [MINUTES]
       bookings add FILE COURT DATE START END HOLDER"""''', '''USAGE = """Usage:
  bookings conflicts FILE
  bookings usage FILE
  bookings free FILE COURT DATE [MINUTES]    (MINUTES: 20 if not given)
  bookings add FILE COURT DATE START END HOLDER"""''')
swap("booklib/cli.py", '''    bookings = store.load(rest[0])
''', '''    bookings = store.load(rest[0])
    if not well_formed(command, rest):
        print(USAGE, file=sys.stderr)
        return 64
''')
swap("booklib/cli.py", '''def run(command, rest):
''', '''def well_formed(command, rest):
    if command == "free" and len(rest) == 4:
        return rest[3].isascii() and rest[3].isdigit() and int(rest[3]) > 0
    if command == "add":
        try:
            return to_minutes(rest[3]) < to_minutes(rest[4])
        except ValueError:
            return False
    return True


def run(command, rest):
''')
swap("booklib/cli.py", "import to_text", "import to_minutes, to_text")
PY
SH
