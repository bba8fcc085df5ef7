#!/usr/bin/env python3
"""table.py FILE: a tab-separated file with a header line as an HTML table."""

import html
import sys

rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1], encoding="utf-8")]
print("<table>")
for number, row in enumerate(rows):
    if len(row) != len(rows[0]):
        sys.exit(f"{sys.argv[1]}:{number + 1}: {len(row)} cells instead of {len(rows[0])}")
    tag = "th" if number == 0 else "td"
    print("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>")
print("</table>")
