import csv
import json


def truth(path="/tests/pristine/orders.csv"):
    regions, count = {}, 0
    for row in csv.DictReader(open(path)):
        regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
        count += 1
    return {"total": sum(regions.values()), "count": count, "by_region": regions}


SEEN = []


def test_1_exists():
    """The report is there."""
    assert len(SEEN) == 0, "runs after the check before it"
    SEEN.append("exists")
    assert open("/app/report.json").read()


def test_2_parses():
    """The report is JSON."""
    assert len(SEEN) == 1, "runs after the check before it"
    SEEN.append("parses")
    assert json.load(open("/app/report.json"))


def test_3_total():
    """total is the sum of all amounts."""
    assert len(SEEN) == 2, "runs after the check before it"
    SEEN.append("total")
    assert json.load(open("/app/report.json"))["total"] == truth()["total"]


def test_4_count():
    """count is the number of orders."""
    assert len(SEEN) == 3, "runs after the check before it"
    SEEN.append("count")
    assert json.load(open("/app/report.json"))["count"] == truth()["count"]


def test_5_regions():
    """by_region is complete."""
    assert len(SEEN) == 4, "runs after the check before it"
    SEEN.append("regions")
    assert json.load(open("/app/report.json"))["by_region"] == truth()["by_region"]


def test_6_keys():
    """There are no other keys."""
    assert len(SEEN) == 5, "runs after the check before it"
    SEEN.append("keys")
    assert set(json.load(open("/app/report.json"))) == {"total", "count", "by_region"}
