# violates: "Among labels with equally many votes it is the one whose first member comes first": with a tie the label of the very nearest neighbour wins, even if it has fewer votes than the tied ones
python3 - <<'PY'
import pathlib

source = pathlib.Path("solve.sh")
text = source.read_text()

def swap(old, new):
    global text
    assert text.count(old) == 1, (old, text.count(old))
    text = text.replace(old, new)

swap("""    votes = Counter(row.label for row in neighbours)
    most = max(votes.values())
    return next(row.label for row in neighbours if votes[row.label] == most)
""", """    votes = Counter(row.label for row in neighbours).most_common(2)
    if len(votes) == 2 and votes[0][1] == votes[1][1]:
        # A tie: the nearest neighbour decides.
        return neighbours[0].label
    return votes[0][0]
""")
source.write_text(text)
PY
