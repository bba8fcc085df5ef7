#!/bin/bash
# Violates: "If n is less than 2, or all usable rows are at `t0`, both rates are `NA`"
# Shown by: two usable rows, both at t0 + 600 (rows may repeat): n_used is 2 and there is a rate and a standard error,
#   but fewer than two different times are taken for too few, and both are NA
set -euo pipefail
cd /app
cat > /app/growth.py <<'GROWTH_PY'
#!/usr/bin/env python3
"""Growth curves of the plate reader: reduce, pack, unpack.

growth.py reduce CONFIG RAWDIR OUT.tsv
growth.py pack   RAWDIR OUT.json
growth.py unpack IN.json DIR
"""
import argparse
import json
import os
import tomllib
from decimal import Context, Decimal, setcontext

SATURATED = 65535.0
SUFFIX = b".tsv"

# Inputs are doubles; the arithmetic on them is done with 40 digits, so that
# sums and differences lose nothing that the result could show.
setcontext(Context(prec=40))


def raw_path(folder, name):
    return os.path.join(os.fsencode(folder), name.encode("utf-8", "surrogateescape") + SUFFIX)


def read_text(path):
    with open(path, "rb") as f:
        return f.read().decode("utf-8", "surrogateescape")


def data_rows(text):
    """The (time_s, counts) fields of the data rows, as written, in file order."""
    lines = text.split("\n")
    tail = lines.pop()                      # what follows the last LF
    lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    if tail:
        lines.append(tail)
    lines = [line for line in lines if not line.startswith("#")]
    return [tuple(line.split("\t")) for line in lines[1:]]      # lines[0] is the header


def fit(system, rows):
    """n, and rate and standard error per hour (None, None where there is no fit)."""
    t0, t_end = float(system["t0"]), float(system["t_end"])
    dark = Decimal(float(system["dark"]))
    scale = Decimal(float(system["gain"])) * Decimal(float(system["n0"]))
    start = Decimal(t0)
    xs, ys = [], []
    for time_s, counts in rows:
        if counts == "NA":
            continue
        t, c = float(time_s), float(counts)
        if c >= SATURATED or t < t0 or t > t_end:
            continue
        signal = Decimal(c) - dark
        if signal <= 0:
            continue
        xs.append(Decimal(t) - start)
        ys.append((signal / scale).ln())
    n = len(xs)
    sxx = sum((x * x for x in xs), Decimal(0))
    if len(set(xs)) < 2:
        return n, None, None
    r = sum((x * y for x, y in zip(xs, ys)), Decimal(0)) / sxx
    ss = sum(((y - r * x) ** 2 for x, y in zip(xs, ys)), Decimal(0))
    se = (ss / (n - 1) / sxx).sqrt()
    return n, r * 3600, se * 3600


def show(value):
    return "NA" if value is None else repr(float(value))


def reduce_(args):
    with open(args.config, "rb") as f:
        systems = tomllib.load(f).get("system", [])
    out = ["name\tn_used\trate_per_h\tse_per_h"]
    for system in systems:
        name = system["name"]
        n, rate, se = fit(system, data_rows(read_text(raw_path(args.rawdir, name))))
        out.append("%s\t%d\t%s\t%s" % (name, n, show(rate), show(se)))
    with open(args.out, "wb") as f:
        f.write(("\n".join(out) + "\n").encode("utf-8"))


def pack(args):
    packed = {}
    for file_name in sorted(os.listdir(os.fsencode(args.rawdir))):
        if not file_name.endswith(SUFFIX):
            continue
        name = file_name[:-len(SUFFIX)].decode("utf-8", "surrogateescape")
        text = read_text(os.path.join(os.fsencode(args.rawdir), file_name))
        rows = data_rows(text)
        packed[name] = {
            "time_s": [row[0] for row in rows],
            "counts": [row[1] for row in rows],
            "text": text,                   # the whole file, for unpack
        }
    with open(args.out, "wb") as f:
        f.write((json.dumps(packed, indent=1) + "\n").encode("ascii"))


def unpack(args):
    with open(args.infile, "rb") as f:
        packed = json.loads(f.read().decode("utf-8"))
    os.makedirs(args.dir, exist_ok=True)
    for name, entry in packed.items():
        with open(raw_path(args.dir, name), "wb") as f:
            f.write(entry["text"].encode("utf-8", "surrogateescape"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("reduce")
    p.add_argument("config")
    p.add_argument("rawdir")
    p.add_argument("out")
    p.set_defaults(run=reduce_)
    p = commands.add_parser("pack")
    p.add_argument("rawdir")
    p.add_argument("out")
    p.set_defaults(run=pack)
    p = commands.add_parser("unpack")
    p.add_argument("infile")
    p.add_argument("dir")
    p.set_defaults(run=unpack)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
GROWTH_PY
chmod 755 /app/growth.py
python3 /app/growth.py reduce /app/systems.toml /app/raw /app/growth.tsv
