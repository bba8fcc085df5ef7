"""Times of day as minutes since midnight."""

import re


def to_minutes(text):
    match = re.fullmatch(r"([0-9]{2}):([0-9]{2})", text)
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    hours, minutes = int(match[1]), int(match[2])
    if minutes > 59 or hours * 60 + minutes > 24 * 60:
        raise ValueError(f"{text!r} is not a time")
    return hours * 60 + minutes


def to_text(minutes):
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
