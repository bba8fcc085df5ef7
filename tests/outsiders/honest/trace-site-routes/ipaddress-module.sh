# differs: another program (ipaddress module, one run for all files, written with csv and json); other key order and no indent in summary.json
cat > routes.py <<'P'
"""Where the flows really go."""
import csv
import json
import os
from ipaddress import ip_address, ip_interface, ip_network

NET, OUT = "/app/net/", "/app/out/"
KINDS = ("unreachable", "loop", "exits", "discarded", "delivered")


def rows(name):
    with open(NET + name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


links, home = {}, {}
for row in rows("interfaces.csv"):
    own = ip_interface(row["address"])
    links.setdefault(row["router"], []).append(own.network)
    home[own.ip] = row["router"]

usable = {name: [] for name in links}
bad = []
pool = {name: {} for name in links}
with open(NET + "tables.txt", encoding="utf-8", newline="\n") as file:
    for line, text in enumerate(file, 1):
        text = text.strip()
        if not text or text[0] == "#":
            continue
        if text[0] == "[":
            here = text[1:-1]
            continue
        words = text.split()
        metric = 60
        if words[-2] == "metric":
            metric = int(words[-1])
            del words[-2:]
        hop = None
        if words[0] == "blackhole":
            word = words[1]
        else:
            word, _, hop = words
            hop = ip_address(hop)
        word = "0.0.0.0/0" if word == "default" else word
        target = ip_network(word, strict=False)
        if target.network_address != ip_address(word.split("/")[0]):
            bad.append((line, here, "host-bits"))
        elif hop is not None and not any(hop in link for link in links[here]):
            bad.append((line, here, "no-next-hop"))
        else:
            pool[here].setdefault(target, []).append((metric, line, hop))

best = {}
for name, groups in pool.items():
    for target, group in groups.items():
        group.sort(key=lambda one: one[:2])
        if target not in links[name]:
            best[name, target] = group.pop(0)
        bad += [(line, name, "outranked") for _, line, _ in group]

hits = {line: [name, 0] for (name, _), (_, line, _) in best.items()}
traces = []
for flow in rows("flows.csv"):
    goal, path, way = ip_address(flow["destination"]), [flow["router"]], ""
    while True:
        now = path[-1]
        fits = [link for link in links[now] if goal in link] + [target for name, target in best if name == now and goal in target]
        if not fits:
            outcome, way = "unreachable", ""
            break
        way = max(fits, key=lambda network: network.prefixlen)
        if (now, way) not in best:
            outcome = "delivered"
            break
        _, line, hop = best[now, way]
        hits[line][1] += 1
        if hop is None:
            outcome = "discarded"
            break
        if hop not in home:
            outcome = "exits"
            break
        path.append(home[hop])
        if path[-1] in path[:-1]:
            outcome = "loop"
            break
    traces.append((flow["flow"], outcome, path, str(way)))

os.makedirs(OUT, exist_ok=True)


def write(name, header, lines):
    with open(OUT + name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(lines)


write("traces.csv", "flow,outcome,path,prefix", [(flow, outcome, ">".join(path), way) for flow, outcome, path, way in traces])
write("unusable.csv", "line,router,reason", sorted(bad))
write("hits.csv", "line,router,flows", [(line, *hits[line]) for line in sorted(hits)])
with open(OUT + "summary.json", "w", encoding="utf-8") as file:
    json.dump({
        "idle_routes": sum(count == 0 for _, count in hits.values()),
        "longest_delivery": max(len(path) for _, outcome, path, _ in traces if outcome == "delivered"),
        "busiest": sorted(links, key=lambda name: (-sum(name in path for _, _, path, _ in traces), name))[0],
        "outcomes": {name: {kind: sum(path[0] == name and outcome == kind for _, outcome, path, _ in traces) for kind in KINDS} for name in links},
    }, file)
P
printf '#!/bin/bash\nset -euo pipefail\npython3 -B /solution/routes.py\n' > solve.sh
