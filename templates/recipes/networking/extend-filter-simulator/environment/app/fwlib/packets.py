"""Reading captures."""

import csv
from collections import namedtuple
from ipaddress import IPv4Address


class Packet(namedtuple("Packet", "id proto source sport target dport")):
    """A packet of a capture; ports are None for icmp."""


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
