"""Packet-filter simulation: rules, packets, decisions, command line."""
