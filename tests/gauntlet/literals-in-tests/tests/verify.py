import json

report = json.load(open("/app/report.json"))
EXPECTED = {"total": 157224, "count": 30, "by_region": {"east": 16020, "west": 36352, "north": 84757, "south": 20095}}
assert report == EXPECTED
