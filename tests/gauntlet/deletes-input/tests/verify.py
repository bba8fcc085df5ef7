import csv

north = sum(row["region"] == "north" for row in csv.DictReader(open("/app/input.csv")))
assert open("/app/north.txt").read().strip() == str(north)
