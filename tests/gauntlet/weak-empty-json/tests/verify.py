import json

report = json.load(open("/app/report.json"))
assert isinstance(report, dict)
