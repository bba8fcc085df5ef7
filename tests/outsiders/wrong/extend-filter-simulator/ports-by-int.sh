# violates: "PORT can be a list … of ports and ranges" (PORT, 1 to 65535) with "A line that is none of this stops the program": ports are whatever int() takes, also +80, 8_0 and digits of other scripts
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('rules.py', r'''    if not re.fullmatch("[0-9]{1,5}", word) or not 1 <= int(word) <= 65535:
        raise ValueError(f"{word!r} is not a port")
    return int(word)
''', r'''    try:
        port = int(word)
    except ValueError:
        raise ValueError(f"{word!r} is not a port") from None
    if not 1 <= port <= 65535:
        raise ValueError(f"{word!r} is not a port")
    return port
''')
VARIANT
