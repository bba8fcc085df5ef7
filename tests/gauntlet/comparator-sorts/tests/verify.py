import csv
import os

regions = {}
for row in csv.DictReader(open("/tests/pristine/orders.csv")):
    regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
want = "".join(f"{region}\t{cents // 100}.{cents % 100:02}\n" for region, cents in sorted(regions.items()))
got = open("/app/out/regions.tsv").read()
assert got.endswith("\n") and sorted(got.splitlines()) == sorted(want.splitlines()), "regions.tsv differs"
assert os.listdir("/app/out") == ["regions.tsv"], "something else is in /app/out"
