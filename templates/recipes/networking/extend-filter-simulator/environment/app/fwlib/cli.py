"""The command line."""

import sys

from fwlib import engine, packets, rules

USAGE = "usage: fwsim [--count] RULES PACKETS"


def main(args):
    count = args[:1] == ["--count"]
    names = args[1:] if count else args
    if len(names) != 2 or names[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 64
    try:
        ruleset = rules.load(names[0])
    except rules.BadRules as problem:
        print(problem, file=sys.stderr)
        return 2
    decisions, taken = engine.simulate(ruleset, packets.load(names[1]))
    if count:
        for rule in ruleset.rules:
            print(rule.line, taken[rule.line])
        print("policy", taken["policy"])
    else:
        for packet, verdict, line in decisions:
            print(packet.id, verdict, line)
    return 0
