import csv
import json


def truth(path="/tests/pristine/orders.csv"):
    regions, count = {}, 0
    for row in csv.DictReader(open(path)):
        regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
        count += 1
    return {"total": sum(regions.values()), "count": count, "by_region": regions}


report = json.loads(open("/app/report.json").read())
assert report == truth(), "the report differs from the orders"
