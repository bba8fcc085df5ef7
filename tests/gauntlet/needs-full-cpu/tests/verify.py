import glob
from concurrent.futures import ThreadPoolExecutor

import csv
import json


def truth(path="/tests/pristine/orders.csv"):
    regions, count = {}, 0
    for row in csv.DictReader(open(path)):
        regions[row["region"]] = regions.get(row["region"], 0) + int(row["amount"])
        count += 1
    return {"total": sum(regions.values()), "count": count, "by_region": regions}


def cpus():
    # cgroup 2: "QUOTA PERIOD" or "max PERIOD"; cgroup 1: two files, and -1 for no limit.
    for path in glob.glob("/sys/fs/cgroup/cpu.max"):
        quota, period = open(path).read().split()
        return 1 if quota == "max" else int(quota) // int(period)
    for path in glob.glob("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"):
        quota, period = int(open(path).read()), int(open(path.replace("quota", "period")).read())
        return 1 if quota < 0 else quota // period
    return 1


with ThreadPoolExecutor(max_workers=cpus()) as pool:
    want = pool.submit(truth)
    got = pool.submit(lambda: json.loads(open("/app/report.json").read()))
    assert got.result() == want.result(), "the report differs from the orders"
