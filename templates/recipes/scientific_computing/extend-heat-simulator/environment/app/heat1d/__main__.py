"""Command line: `python3 -m heat1d run CASE.json`."""

import sys

from heat1d import config, output, solver


def main(arguments):
    if len(arguments) != 2 or arguments[0] != "run":
        print("usage: python3 -m heat1d run CASE.json", file=sys.stderr)
        return 2
    try:
        case = config.load(arguments[1])
        states = list(solver.run(case))
    except config.CaseError as error:
        print(f"heat1d: {error}", file=sys.stderr)
        return 2
    except solver.Unstable as error:
        print(f"heat1d: {error}", file=sys.stderr)
        return 3
    output.write(case, states, sys.stdout)
    return 0


sys.exit(main(sys.argv[1:]))
