# differs: everything is loaded into sqlite tables and answered by SQL (Python only loads), JSON indented by four with the hop of most bytes first, redundant.txt by prefix length
rm audit.py
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -e
install -d /app/result
python3 <<'PY'
import csv, json, sqlite3
from ipaddress import ip_interface

base = sqlite3.connect(":memory:")
base.executescript("""
create table line (place integer primary key, prefix text, low int, high int, length int, hop text, protocol text, metric int);
create table rule (number integer primary key, action text, proto text, slow int, shigh int, dlow int, dhigh int, plow int, phigh int);
create table flow (place integer primary key, id text, src int, dst int, proto text, port int, bytes int);
""")


def span(text):
    network = ip_interface("0.0.0.0/0" if text == "any" else text).network
    return int(network[0]), int(network[-1]), network


with open("/app/net/routes.csv", newline="") as file:
    for row in csv.DictReader(file):
        low, high, network = span(row["prefix"])
        base.execute("insert into line values (null, ?, ?, ?, ?, ?, ?, ?)",
                     (str(network), low, high, network.prefixlen, row["next_hop"], row["protocol"], int(row["metric"])))
with open("/app/net/filter.txt") as file:
    for text in file:
        words = text.partition("#")[0].split()
        if words:
            ports = words[4].split("-") if len(words) > 4 else (-1, 99999)
            base.execute("insert into rule values (null, ?, ?, ?, ?, ?, ?, ?, ?)",
                         (*words[:2], *span(words[2])[:2], *span(words[3])[:2], int(ports[0]), int(ports[-1])))
with open("/app/net/flows.csv", newline="") as file:
    for row in csv.DictReader(file):
        base.execute("insert into flow values (null, ?, ?, ?, ?, ?, ?)",
                     (row["id"], span(row["src"])[0], span(row["dst"])[0], row["proto"], int(row["dport"]), int(row["bytes"])))

base.executescript("""
create table route as
    select * from (select *, row_number() over (partition by low, high order by
        case protocol when 'ospf' then 1 when 'static' then 2 when 'bgp' then 3 else 4 end, metric, place) as turn from line)
    where turn = 1;
create table decision as
    select flow.*, route.prefix, route.hop, case when hop <> 'discard' then
        (select min(number) from rule where rule.proto in ('ip', flow.proto) and src between slow and shigh
            and dst between dlow and dhigh and port between plow and phigh) end as number
    from flow left join route on route.low =
        (select low from route where dst between low and high order by length desc limit 1)
        and route.high = (select high from route where dst between low and high order by length desc limit 1);
create view result as
    select decision.place, id, coalesce(prefix, '-'), coalesce(hop, '-') as hop,
        case when hop is null or hop = 'discard' then '-' else coalesce(number, 'default') end,
        case when hop is null then 'unreachable' when hop = 'discard' then 'discarded' else coalesce(action, 'deny') end as verdict,
        bytes
    from decision left join rule using (number);
""")

with open("/app/result/decisions.csv", "w") as file:
    print("id,route,next_hop,rule,verdict", file=file)
    for row in base.execute("select * from result order by place"):
        print(*row[1:6], sep=",", file=file)
with open("/app/result/next_hops.json", "w") as file:
    rows = base.execute("select hop, count(*), sum(bytes) from result where verdict = 'permit' group by hop order by 3 desc")
    json.dump({hop: {"flows": flows, "bytes": total} for hop, flows, total in rows}, file, indent=4)
with open("/app/result/redundant.txt", "w") as file:
    for prefix, in base.execute("""
            select prefix from route as narrow where hop = (
                select hop from route as wide where wide.length < narrow.length and narrow.low between wide.low and wide.high
                order by wide.length desc limit 1)
            order by length, low"""):
        print(prefix, file=file)
with open("/app/result/dead_rules.txt", "w") as file:
    for number, in base.execute("""
            select distinct late.number from rule as early join rule as late on early.number < late.number
                and early.proto in ('ip', late.proto) and early.slow <= late.slow and early.shigh >= late.shigh
                and early.dlow <= late.dlow and early.dhigh >= late.dhigh and early.plow <= late.plow and early.phigh >= late.phigh
            order by 1"""):
        print(number, file=file)
PY
SOLVE
