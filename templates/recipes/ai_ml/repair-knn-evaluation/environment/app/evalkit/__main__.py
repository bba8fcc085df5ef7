"""Command line: `python3 -m evalkit report` and `python3 -m evalkit describe`."""

import argparse
import json
import sys

from evalkit import data, report


def main():
    parser = argparse.ArgumentParser(prog="evalkit")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("report", help="cross-validate and print a JSON report")
    command.add_argument("--data", required=True)
    command.add_argument("--folds", type=int, required=True)
    command.add_argument("--k", type=int, required=True)
    command = commands.add_parser("describe", help="print what is in a data file")
    command.add_argument("--data", required=True)
    options = parser.parse_args()
    try:
        rows = data.load(options.data)
    except data.DataError as error:
        print(f"evalkit: {error}", file=sys.stderr)
        return 2
    if options.command == "describe":
        print(data.describe(rows))
        return 0
    if options.folds < 2 or options.k < 1:
        print("evalkit: --folds must be at least 2 and --k at least 1", file=sys.stderr)
        return 2
    if not rows:
        print(f"evalkit: {options.data}: there are no rows to evaluate", file=sys.stderr)
        return 2
    print(json.dumps(report.build(rows, options.folds, options.k), indent=2, sort_keys=True))
    return 0


sys.exit(main())
