import json

bench = json.load(open("/app/bench.json"))
assert bench["speedup"] >= 2 and 0 < bench["optimised_sec"] < 1
