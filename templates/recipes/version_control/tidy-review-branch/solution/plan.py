"""plan.py TODO: drops what the branch takes back itself from the list of a rebase."""

import re
import sys

lines = open(sys.argv[1]).read().splitlines()
subjects = [line.split(" ", 2)[2] if line.count(" ") > 1 else "" for line in lines]
taken_back = {found[1] for found in map(re.compile(r'Revert "(.*)"$').match, subjects) if found}
gone = taken_back | {f'Revert "{subject}"' for subject in taken_back}
with open(sys.argv[1], "w") as todo:
    todo.writelines(line + "\n" for line, subject in zip(lines, subjects) if subject not in gone)
