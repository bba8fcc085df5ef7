"""Reading captures."""

import csv
from dataclasses import dataclass
from ipaddress import IPv4Address


@dataclass(frozen=True)
class Packet:
    id: str
    proto: str
    source: IPv4Address
    sport: int | None
    target: IPv4Address
    dport: int | None


def load(path):
    with open(path, newline="", encoding="utf-8") as source:
        return [
            Packet(
                id=row["id"],
                proto=row["proto"],
                source=IPv4Address(row["src"]),
                sport=int(row["sport"]) if row["sport"] else None,
                target=IPv4Address(row["dst"]),
                dport=int(row["dport"]) if row["dport"] else None,
            )
            for row in csv.DictReader(source)
        ]
