"""Data files: CSV with the columns id, group, label and then one column for each numeric feature."""

import csv
from collections import Counter, namedtuple

Row = namedtuple("Row", "id group label values")
FIXED = ["id", "group", "label"]


class DataError(Exception):
    """The data file cannot be used."""


def load(path):
    try:
        with open(path, newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if header[:3] != FIXED or len(header) < 4:
                raise DataError(f"{path}: the columns must be id, group, label and at least one feature")
            rows = list(reader)
            if any(len(row) != len(header) for row in rows):
                raise DataError(f"{path}: a row has not {len(header)} fields")
            return [Row(row[0], row[1], row[2], tuple(float(value) for value in row[3:])) for row in rows]
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}: {error}") from None


def describe(rows):
    labels = Counter(row.label for row in rows)
    lines = [f"rows {len(rows)}", f"groups {len({row.group for row in rows})}"]
    return "\n".join(lines + [f"label {label} {labels[label]}" for label in sorted(labels)])
