import json

report = json.load(open("/app/report.json"))
assert isinstance(report["total"], int) and isinstance(report["count"], int) and "by_region" in report
