import csv
import os

regions = {}
for row in csv.DictReader(open("/tests/pristine/orders.csv")):
    regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
want = "".join(f"{region}\t{cents // 100}.{cents % 100:02}\n" for region, cents in sorted(regions.items()))
got = open("/app/out/regions.tsv").read()
def rows(text):
    return [(line.split("\t")[0], float(line.split("\t")[1])) if line.count("\t") == 1 else None for line in text.split("\n")[:-1]] + [text.split("\n")[-1]]


assert rows(got) == rows(want), "regions.tsv differs"
assert os.listdir("/app/out") == ["regions.tsv"], "something else is in /app/out"
