# differs: addresses and ports are compiled to sorted intervals of numbers (new module fwlib/spans.py), group bodies are merged, all lines are read and the last error is the one that is named, other messages, README brought up to date
cat > spans.py <<'PY'
"""Sets of whole numbers, as sorted spans that do not touch."""

from bisect import bisect_right


class Spans:
    def __init__(self, pairs):
        self.lows, self.highs = [], []
        for low, high in sorted(pairs):
            if self.highs and low <= self.highs[-1] + 1:
                self.highs[-1] = max(high, self.highs[-1])
            else:
                self.lows.append(low)
                self.highs.append(high)

    def pairs(self):
        return list(zip(self.lows, self.highs))

    def others(self, top):
        """What is not in here, up to top."""
        edges = [-1] + [edge for pair in self.pairs() for edge in pair] + [top + 1]
        return Spans((low + 1, high - 1) for low, high in zip(edges[::2], edges[1::2]) if low + 1 <= high - 1)

    def __contains__(self, number):
        at = bisect_right(self.lows, number) - 1
        return at >= 0 and number <= self.highs[at]
PY
cat > rules.py <<'PY'
"""Reading rule files."""

import re
from collections import namedtuple
from ipaddress import IPv4Network

from fwlib.spans import Spans

TOP = 2**32 - 1
EVERYTHING = Spans([(0, TOP)])

# action and proto are words, the others Spans; ports is None if they do not matter
Rule = namedtuple("Rule", "line action proto source target ports")


class BadRules(Exception):
    """A rule file that cannot be read."""


class Problem(ValueError):
    """What is wrong with a line."""


class Reader:
    """Reads one file; `policy` and `rules` are the result."""

    def __init__(self):
        self.policy = "deny"
        self.rules = []
        self.groups = {}

    def line(self, number, words):
        words = iter(words)
        first = next(words)
        if first == "policy":
            self.policy = self.one_of("allow deny", words)
        elif first == "group":
            self.group(words)
        elif first in ("allow", "deny"):
            self.rule(number, first, words)
        else:
            raise Problem(f"cannot begin with {first}")
        rest = " ".join(words)
        if rest:
            raise Problem(f"superfluous: {rest}")

    def word(self, words):
        for word in words:
            return word
        raise Problem("incomplete")

    def one_of(self, choices, words):
        word = self.word(words)
        if word not in choices.split():
            raise Problem(f"expected one of {choices}, got {word}")
        return word

    def group(self, words):
        name = self.word(words)
        if re.search("[^a-z0-9-]", name):
            raise Problem(f"bad name of a group: {name}")
        fresh = name not in self.groups
        items = list(words)
        try:
            pairs = [pair for item in items for pair in self.item(item).pairs()]
        finally:
            # A name with a bad definition is known all the same, or each use would be one more error.
            self.groups.setdefault(name, EVERYTHING)
        if not fresh:
            raise Problem(f"second definition of {name}")
        if not pairs:
            raise Problem(f"nothing in group {name}")
        self.groups[name] = Spans(pairs)

    def item(self, word):
        if word[0] == "%":
            if word[1:] not in self.groups:
                raise Problem(f"{word} is not defined yet")
            return self.groups[word[1:]]
        if not re.fullmatch(r"[0-9]+(\.[0-9]+){3}(/[0-9]{1,2})?", word):
            raise Problem(f"bad address {word}")
        try:
            network = IPv4Network(word)
        except ValueError as error:
            raise Problem(f"bad address {word}: {error}") from None
        return Spans([(int(network[0]), int(network[-1]))])

    def end(self, words):
        word = self.word(words)
        if word == "except":
            return self.place(self.word(words)).others(TOP)
        return self.place(word)

    def place(self, word):
        return EVERYTHING if word == "any" else self.item(word)

    def rule(self, number, action, words):
        proto = self.one_of("tcp udp icmp any", words)
        self.one_of("from", words)
        source = self.end(words)
        self.one_of("to", words)
        target = self.end(words)
        ports = None
        for word in words:
            if word != "port" or proto in ("icmp", "any"):
                raise Problem(f"{word} cannot stand here")
            ports = Spans(self.ports(item) for item in self.word(words).split(","))
            break
        self.rules.append(Rule(number, action, proto, source, target, ports))

    def ports(self, item):
        match = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", item)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 0 < low <= high < 65536:
            raise Problem(f"bad ports: {item or 'nothing'}")
        return low, high


def load(path):
    reader, complaint = Reader(), None
    with open(path, encoding="utf-8") as source:
        for number, text in enumerate(source, 1):
            words = text.partition("#")[0].split()
            if words:
                try:
                    reader.line(number, words)
                except Problem as problem:
                    complaint = f"{path}:{number}: {problem}"
    if complaint:
        raise BadRules(complaint)
    return reader
PY
cat > engine.py <<'PY'
"""Deciding packets."""

from collections import Counter


def matches(rule, packet):
    if rule.proto not in ("any", packet.proto):
        return False
    if rule.ports is not None and (packet.dport is None or packet.dport not in rule.ports):
        return False
    return int(packet.source) in rule.source and int(packet.target) in rule.target


def simulate(ruleset, packets):
    """One (packet, verdict, line or "policy") for each packet, and how often each line was taken."""
    decisions = []
    for packet in packets:
        rule = next((rule for rule in ruleset.rules if matches(rule, packet)), None)
        decisions.append((packet, rule.action if rule else ruleset.policy, rule.line if rule else "policy"))
    return decisions, Counter(line for _, _, line in decisions)
PY
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -e
cp /solution/spans.py /solution/rules.py /solution/engine.py /app/fwlib/
chmod 644 /app/fwlib/spans.py
sed -i '/fwlib\/rules.py/a - `fwlib/spans.py`: sets of addresses and of ports' /app/README.md
SOLVE
