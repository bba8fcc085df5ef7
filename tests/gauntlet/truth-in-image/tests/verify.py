import json

want = json.load(open("/opt/data/expected_report.json"))
assert json.load(open("/app/report.json")) == want
