"""Deciding packets."""

from collections import Counter


def matches(rule, packet):
    return (
        rule.proto in ("any", packet.proto)
        and packet.source in rule.source
        and packet.target in rule.target
        and rule.port in (None, packet.dport)
    )


def decide(ruleset, packet):
    for rule in ruleset.rules:
        if matches(rule, packet):
            return rule
    return None


def simulate(ruleset, packets):
    """One (packet, verdict, line or "policy") for each packet, and how often each line was taken."""
    decisions, taken = [], Counter()
    for packet in packets:
        rule = decide(ruleset, packet)
        verdict, line = (rule.action, rule.line) if rule else (ruleset.policy, "policy")
        taken[line] += 1
        decisions.append((packet, verdict, line))
    return decisions, taken
