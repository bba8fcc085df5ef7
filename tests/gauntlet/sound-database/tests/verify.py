import csv
import sqlite3

want = [(int(n), kind, int(stock)) for n, kind, stock in csv.reader(open("/tests/pristine/items.csv"))]
store = sqlite3.connect("file:/app/items.db?mode=ro", uri=True)
assert store.execute("SELECT id, kind, stock FROM items ORDER BY id").fetchall() == want
