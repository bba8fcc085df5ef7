# violates: "Times are `HH:MM` from `00:00` to `24:00`" / "neither empty nor a booking (7 fields, an id, two times in the right order": 9:00, 09:5 or " 09:00" in the file pass as times
cat >> solve.sh <<'SH'

python3 - <<'PY'
import pathlib

def swap(place, old, new):
    source = pathlib.Path("/app", place)
    text = source.read_text()
    assert text.count(old) == 1, (place, old, text.count(old))
    source.write_text(text.replace(old, new))

swap("booklib/times.py", """    match = re.fullmatch(r"([0-9]{2}):([0-9]{2})", text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    hours, minutes = int(match[1]), int(match[2])
    if minutes > 59""", """    try:
        hours, minutes = map(int, text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} is not a time") from None
    if hours < 0 or not 0 <= minutes <= 59""")
swap("booklib/times.py", "import re\n\n\n", "\n")
PY
SH
