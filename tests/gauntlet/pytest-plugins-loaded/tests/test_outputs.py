import csv
import json


def truth(path="/tests/pristine/orders.csv"):
    regions, count = {}, 0
    for row in csv.DictReader(open(path)):
        regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
        count += 1
    return {"total": sum(regions.values()), "count": count, "by_region": regions}


def report():
    return json.loads(open("/app/report.json").read())


def test_total():
    """total is the sum of all amounts."""
    assert report()["total"] == truth()["total"]


def test_count():
    """count is the number of orders."""
    assert report()["count"] == truth()["count"]


def test_by_region():
    """by_region maps each region to its sum."""
    assert report()["by_region"] == truth()["by_region"]
