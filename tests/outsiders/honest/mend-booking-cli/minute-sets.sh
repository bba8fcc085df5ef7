# differs: reports.py counts with sets of minutes instead of sorted stretches; usage, free and conflicts are written anew, everything else stays
cat > reports.py <<'EOF'
"""Questions that bookings answer, all by sets of minutes."""

import collections
import itertools

OPENS = 9 * 60
CLOSES = 18 * 60 + 30


def taken(booking):
    return set(range(booking.start, booking.end))


def conflicts(bookings):
    running = [booking for booking in bookings if booking.confirmed]
    found = []
    for a, b in itertools.combinations(running, 2):
        if (a.date, a.name) == (b.date, b.name) and a.start < b.end and b.start < a.end:
            found.append(" ".join([a.date, a.name, min(a.id, b.id), max(a.id, b.id)]))
    found.sort()
    return found


def usage(bookings):
    days = collections.defaultdict(set)
    for booking in bookings:
        days[booking.name, booking.date] |= taken(booking) if booking.confirmed else set()
    totals = collections.Counter()
    for (name, _), minutes in days.items():
        totals[name] += len(minutes)
    by_name = sorted(totals)
    by_name.sort(key=totals.get, reverse=True)  # a stable sort: equal ones stay by name
    return [f"{name} {totals[name]}" for name in by_name]


def free(bookings, name, date, shortest):
    busy = set()
    for booking in bookings:
        if booking.confirmed and (booking.name, booking.date) == (name, date):
            busy |= taken(booking)
    gaps = []
    for is_busy, group in itertools.groupby(range(OPENS, CLOSES), key=busy.__contains__):
        minutes = list(group)
        if not is_busy and len(minutes) >= shortest:
            gaps.append((minutes[0], minutes[-1] + 1))
    return gaps


def clash(bookings, wanted):
    ids = [
        booking.id
        for booking in bookings
        if booking.confirmed
        and (booking.name, booking.date) == (wanted.name, wanted.date)
        and taken(booking) & taken(wanted)
    ]
    return min(ids) if ids else None
EOF
cat > solve.sh <<'EOF'
#!/bin/bash
set -euo pipefail
cat /solution/reports.py > /app/booklib/reports.py
EOF
rm swap.py
