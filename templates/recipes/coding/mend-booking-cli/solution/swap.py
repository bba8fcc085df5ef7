"""swap.py FILE OLD NEW: replaces the one place in FILE that reads OLD."""

import pathlib
import sys

place, old, new = sys.argv[1:]
source = pathlib.Path(place)
text = source.read_text()
if old:
    assert text.count(old) == 1, f"{place}: {old!r} stands {text.count(old)} times"
    text = text.replace(old, new)
else:
    # The end of `free` is missing altogether: it goes before the result.
    text = text.replace("    return gaps\n", new + "    return gaps\n")
source.write_text(text)
