"""Command line of the shelf."""

import argparse
import sys

from shelf import links, paths, store, unpack

OK, UNUSABLE, FORBIDDEN, NOT_FOUND, TOO_LARGE = 0, 2, 3, 4, 5


def parse(arguments):
    parser = argparse.ArgumentParser(prog="shelf")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, last in (("get", "request"), ("put", "request"), ("unpack", "archive")):
        command = commands.add_parser(name)
        command.add_argument("--root", required=True)
        command.add_argument(last)
    command = commands.add_parser("check-link")
    command.add_argument("--key-file", required=True)
    command.add_argument("--now", type=int, required=True)
    command.add_argument("link")
    return parser.parse_args(arguments)


def work(options):
    if options.command == "get":
        sys.stdout.buffer.write(store.get(options.root, options.request))
    elif options.command == "put":
        store.put(options.root, options.request, sys.stdin.buffer.read())
    elif options.command == "unpack":
        unpack.unpack(options.root, options.archive)
    else:
        with open(options.key_file, "rb") as file:
            key = file.read().rstrip(b"\n")
        print(links.check(options.link, key, options.now))


def main():
    options = parse(sys.argv[1:])
    try:
        work(options)
    except paths.Forbidden as error:
        print(f"forbidden: {error}", file=sys.stderr)
        return FORBIDDEN
    except paths.NotFound as error:
        print(f"not found: {error}", file=sys.stderr)
        return NOT_FOUND
    except store.TooLarge as error:
        print(f"too large: {error}", file=sys.stderr)
        return TOO_LARGE
    except unpack.NotAnArchive as error:
        print(f"not an archive: {error}", file=sys.stderr)
        return UNUSABLE
    return OK


sys.exit(main())
