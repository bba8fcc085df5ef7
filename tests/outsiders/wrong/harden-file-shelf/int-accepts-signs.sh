# violates: "A percent sign without two hexadecimal digits … forbidden": decodes with int(…, 16), which also takes %+1, "% 1" and digits of other scripts
python3 - <<'VARIANT'
def sub(file, old, new):
    text = open(file).read()
    assert old in text, (file, old)
    open(file, 'w').write(text.replace(old, new))

sub('solve.sh', r'''    if re.search(r"%(?![0-9A-Fa-f]{2})", request):
        raise Forbidden("a percent sign without two digits")
    try:
        name = unquote_to_bytes(os.fsencode(request)).decode("utf-8")
    except UnicodeError:
        raise Forbidden("not UTF-8") from None
    return name
''', r'''    first, *rest = request.split("%")
    try:
        name = os.fsencode(first)
        for piece in rest:
            if len(piece) < 2:
                raise Forbidden("a percent sign without two digits")
            name += bytes([int(piece[:2], 16)]) + os.fsencode(piece[2:])
        return name.decode("utf-8")
    except UnicodeError:
        raise Forbidden("not UTF-8") from None
    except ValueError:
        raise Forbidden("a percent sign without two digits") from None
''')
sub('solve.sh', r'''import os
import re
from urllib.parse import unquote_to_bytes
''', r'''import os
''')
VARIANT
