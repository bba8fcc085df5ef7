"""Case files."""

import json

KEYS = ["length", "cells", "diffusivity", "dt", "steps", "every", "initial", "left", "right"]
# Parameters of each type of end.
ENDS = {"fixed": ["value"]}


class CaseError(Exception):
    """The case cannot be used."""


def load(path):
    """The case as a dict, `initial` as a list."""
    try:
        with open(path) as file:
            case = json.load(file)
    except (OSError, ValueError) as error:
        raise CaseError(f"{path}: {error}") from None
    if not isinstance(case, dict):
        raise CaseError(f"{path}: a case is an object")
    for key in case:
        if key not in KEYS:
            raise CaseError(f"unknown key {key}")
    for key in KEYS:
        if key not in case:
            raise CaseError(f"{key} is missing")
    for key in ("length", "diffusivity", "dt"):
        if not is_number(case[key]) or case[key] <= 0:
            raise CaseError(f"{key} must be a positive number")
    for key, least in (("cells", 3), ("steps", 0), ("every", 1)):
        if type(case[key]) is not int or case[key] < least:
            raise CaseError(f"{key} must be an integer of at least {least}")
    if is_number(case["initial"]):
        case["initial"] = [case["initial"]] * case["cells"]
    initial = case["initial"]
    if not isinstance(initial, list) or len(initial) != case["cells"] or not all(map(is_number, initial)):
        raise CaseError("initial must be a number or one number for each cell")
    for side in ("left", "right"):
        check_end(side, case[side])
    return case


def is_number(value):
    return type(value) in (int, float)


def check_end(side, end):
    if not isinstance(end, dict) or not isinstance(end.get("type"), str) or end["type"] not in ENDS:
        raise CaseError(f"{side} must have a type of {', '.join(ENDS)}")
    names = ENDS[end["type"]]
    if sorted(end) != sorted(["type", *names]) or not all(is_number(end[name]) for name in names):
        raise CaseError(f"{side}: a {end['type']} end has the numbers {', '.join(names)} and nothing else")
