# differs: the whole program is one file (fwlib goes away), addresses are looked up in sets by mask, ports are a table of bytes, lines are taken apart by one regular expression, other messages
cat > fwsim <<'PY'
#!/usr/bin/env python3
"""Plays captured packets through a rule file: fwsim [--count] RULES PACKETS."""

import csv
import ipaddress
import re
import sys

RULE = re.compile(
    r"(?P<action>allow|deny) (?P<proto>tcp|udp|icmp|any)"
    r" from (?P<not_source>except )?(?P<source>\S+)"
    r" to (?P<not_target>except )?(?P<target>\S+)"
    r"(?: port (?P<ports>\S+))?"
)


class Bad(Exception):
    pass


class Networks:
    def __init__(self, pairs):
        self.pairs = frozenset(pairs)
        self.masks = {mask for mask, _ in self.pairs}

    def has(self, address):
        return any((mask, address & mask) in self.pairs for mask in self.masks)


def network(text):
    if not re.fullmatch("[0-9.]+(/[0-9]{1,2})?", text):
        raise Bad(f"no address: {text}")
    try:
        found = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise Bad(str(error)) from None
    return Networks([(int(found.netmask), int(found.network_address))])


class Everywhere:
    def has(self, address):
        return True


class Elsewhere:
    def __init__(self, place):
        self.place = place

    def has(self, address):
        return not self.place.has(address)


def member(word, groups):
    if word.startswith("%"):
        try:
            return groups[word[1:]]
        except KeyError:
            raise Bad(f"unknown group {word[1:]}") from None
    return network(word)


def side(negated, word, groups):
    place = Everywhere() if word == "any" else member(word, groups)
    return Elsewhere(place) if negated else place


def table(text):
    ports = bytearray(65536)
    for item in text.split(","):
        match = re.fullmatch("([0-9]{1,5})(-([0-9]{1,5}))?", item)
        if not match:
            raise Bad(f"no port: {item!r}")
        low = int(match[1])
        high = int(match[3]) if match[2] else low
        if low == 0 or high > 65535 or high < low:
            raise Bad(f"no ports: {item}")
        ports[low : high + 1] = b"\1" * (high + 1 - low)
    return ports


def read_rules(path):
    policy, rules, groups = "deny", [], {}
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            words = text.split("#", 1)[0].split()
            if not words:
                continue
            try:
                if words[0] == "policy":
                    if words[1:] not in (["allow"], ["deny"]):
                        raise Bad("policy is allow or deny")
                    policy = words[1]
                    continue
                if words[0] == "group":
                    if len(words) < 3 or not re.fullmatch("[a-z0-9-]+", words[1]):
                        raise Bad("group NAME ITEM...")
                    if words[1] in groups:
                        raise Bad(f"group {words[1]} exists")
                    groups[words[1]] = Networks(pair for word in words[2:] for pair in member(word, groups).pairs)
                    continue
                match = RULE.fullmatch(" ".join(words))
                if not match:
                    raise Bad("not understood")
                if match["ports"] and match["proto"] not in ("tcp", "udp"):
                    raise Bad("only tcp and udp have ports")
                rules.append((
                    number, match["action"], match["proto"],
                    side(match["not_source"], match["source"], groups),
                    side(match["not_target"], match["target"], groups),
                    match["ports"] and table(match["ports"]),
                ))
            except Bad as error:
                raise Bad(f"{path}:{number}: {error}") from None
    return policy, rules


def decide(rules, proto, source, target, port):
    for number, action, rule_proto, sources, targets, ports in rules:
        if rule_proto not in ("any", proto) or (ports and not (port is not None and 0 <= port < 65536 and ports[port])):
            continue
        if sources.has(source) and targets.has(target):
            return number, action
    return "policy", None


def main(arguments):
    counting = arguments[:1] == ["--count"]
    if counting:
        arguments = arguments[1:]
    if len(arguments) != 2 or arguments[0][:1] == "-":
        sys.stderr.write("usage: fwsim [--count] RULES PACKETS\n")
        return 64
    try:
        policy, rules = read_rules(arguments[0])
    except Bad as error:
        sys.stderr.write(f"{error}\n")
        return 2
    out = []
    counts = {rule[0]: 0 for rule in rules}
    counts["policy"] = 0
    with open(arguments[1], newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            port = int(row["dport"]) if row["dport"] else None
            line, action = decide(rules, row["proto"], int(ipaddress.IPv4Address(row["src"])), int(ipaddress.IPv4Address(row["dst"])), port)
            counts[line] += 1
            out.append(f"{row['id']} {action or policy} {line}\n")
    if counting:
        out = [f"{line} {count}\n" for line, count in counts.items()]
    sys.stdout.write("".join(out))
    return 0


sys.exit(main(sys.argv[1:]))
PY
rm rules.py engine.py
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -e
install -m 755 /solution/fwsim /app/fwsim
rm -r /app/fwlib
sed -i '/fwlib/d; s/the entry point/the whole program/' /app/README.md
SOLVE
