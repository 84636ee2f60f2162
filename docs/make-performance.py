#!/usr/bin/env python3
# ===- make-performance.py - tables and charts from measurements -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: make-performance.py                 writes tables and charts
#        make-performance.py --check [PAGE]  fails if they are out of date
#        make-performance.py --add NAME "DESCRIPTION" BENCH.JSON
#
# `make bench` writes build/bench.json, test/hardware/on-gpu.sh on-gpu/bench.json.
# --add copies the figures of the tables to docs/bench/NAME.json, one file per
# machine or GPU, and then writes tables and charts.
# The page has the tables between the comments `<!-- table NAME:FAMILY -->` and
# `<!-- end -->`, where FAMILY is a family of cases or `peers`. The charts are
# docs/bench/NAME.svg.

import collections
import difflib
import html
import json
import os
import re
import sys

DOCS = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(DOCS, "performance.md")
BENCH = os.path.join(DOCS, "bench")
TABLE = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

# The number of threads is 0 on a GPU.
Case = collections.namedtuple("Case", "family variant dtype shape threads")


def parse(name):
    """Parses `family/variant/dtype/shape/threads:N` and the same with `cuda:N`;
    None for other names."""
    match = re.fullmatch(
        r"([^/]+)/([^/]+)/([^/]+)/([^/]+)/(?:threads:(\d+)|cuda:\d+)", name)
    return Case(*match.groups()[:4], int(match.group(5) or 0)) if match else None


def add(name, description, path):
    """Writes docs/bench/NAME.json from a report of posenc-bench."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    rows = {}
    for row in report["benchmarks"]:
        if parse(row["name"]) and "fraction_of_limit" in row:
            rows[row["name"]] = {
                "ms": float(f"{1e3 * row['p50_seconds']:.4g}"),
                "fraction": round(row["fraction_of_limit"], 3)}
            # The time of another implementation as a multiple of ours.
            if "time_over_posenc" in row:
                rows[row["name"]]["times"] = float(
                    f"{row['time_over_posenc']:.3g}")
    os.makedirs(BENCH, exist_ok=True)
    with open(os.path.join(BENCH, name + ".json"), "w",
              encoding="utf-8") as file:
        json.dump({"machine": description, "date": report["context"]["date"][:10],
                   "cases": rows}, file, indent=0)
        file.write("\n")


def load():
    """Returns the measurements of all machines by the names of their files."""
    machines = {}
    for file_name in sorted(os.listdir(BENCH)):
        if file_name.endswith(".json"):
            with open(os.path.join(BENCH, file_name), encoding="utf-8") as file:
                machines[file_name[:-5]] = json.load(file)
    return machines


def number(fraction):
    """Formats a fraction with two decimals."""
    return f"{fraction:.2f}"


def duration(milliseconds):
    """Formats a time with three digits."""
    return (f"{milliseconds:.3g} ms" if milliseconds >= 1
            else f"{1e3 * milliseconds:.3g} µs")


def make_table(machine, family):
    """Makes a table of one family: a row per variant and shape, a column per
    element type. Cells have the fractions of the limit by threads; on GPUs the
    time and the fraction."""
    cells = collections.defaultdict(dict)
    dtypes = []
    for name, row in machine["cases"].items():
        case = parse(name)
        if case.family != family:
            continue
        if case.dtype not in dtypes:
            dtypes.append(case.dtype)
        figure = number(row["fraction"])
        if not case.threads:
            figure = f"{duration(row['ms'])}, {figure}"
        cells[case.variant, case.shape].setdefault(case.dtype, {})[
            case.threads] = figure
    if not cells:
        sys.exit(f"no case of '{family}'")
    lines = ["| case | shape | " + " | ".join(dtypes) + " |",
             "|---" * (2 + len(dtypes)) + "|"]
    for (variant, shape), columns in cells.items():
        texts = [" / ".join(columns.get(dtype, {}).values())
                 for dtype in dtypes]
        lines.append(f"| {variant} | {shape} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def make_peers(machine):
    """Makes a table of the times of other systems on one thread, as multiples of
    ours."""
    ours, peers = {}, collections.defaultdict(dict)
    for name, row in machine["cases"].items():
        case = parse(name)
        key = case[1:]
        if case.family.startswith("peer-"):
            peers[key][case.family[5:]] = row["times"]
        else:
            ours[key] = (case.family, row["ms"])
    systems = sorted({system for row in peers.values() for system in row})
    lines = ["| case | shape | element type | ours | " + " | ".join(systems) + " |",
             "|---" * (4 + len(systems)) + "|"]
    for key, (family, ms) in ours.items():
        if key in peers and key[3] == 1:
            texts = [f"{peers[key][system]:.3g}" if system in peers[key] else ""
                     for system in systems]
            lines.append(f"| {family} {key[0]} | {key[2]} | {key[1]} | "
                         f"{duration(ms)} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def make_chart(machine):
    """Makes an SVG with a bar for each case's fraction of the limit, on one thread
    or on a GPU, in the order of the report."""
    bars = []
    title = machine["machine"]
    for name, row in machine["cases"].items():
        case = parse(name)
        if case.threads <= 1 and not case.family.startswith("peer-"):
            bars.append((f"{case.family} {case.variant} {case.dtype} {case.shape}",
                         row["fraction"]))
    if all(parse(name).threads for name in machine["cases"]):
        title += ", one thread"
    left, unit, step = 330, 300, 15
    height = 40 + step * len(bars)
    width = left + int(1.5 * unit) + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="8" y="16" font-weight="bold">{html.escape(title)}'
           ': speed / limit</text>']
    for i, (label, fraction) in enumerate(bars):
        y = 30 + step * i
        length = min(fraction, 1.5) * unit
        out.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">'
                   f'{html.escape(label)}</text>')
        out.append(f'<rect x="{left}" y="{y + 1}" width="{length:.0f}" height="11" '
                   'fill="#4878a8"/>')
        out.append(f'<text x="{left + length + 4:.0f}" y="{y + 10}">'
                   f'{number(fraction)}</text>')
    out.append(f'<line x1="{left + unit}" y1="24" x2="{left + unit}" '
               f'y2="{height - 6}" stroke="#c33" stroke-dasharray="3 3"/>')
    return "\n".join(out) + "\n</svg>\n"


def make_page(text, machines):
    """Returns the page with all tables replaced."""
    def replace(match):
        name, _, family = match.group(2).partition(":")
        if name not in machines:
            sys.exit(f"docs/bench has no machine '{name}'")
        machine = machines[name]
        table = (make_peers(machine) if family == "peers"
                 else make_table(machine, family))
        return match.group(1) + table + match.group(3)
    return TABLE.sub(replace, text)


def check(path, new):
    """Exits with a diff if the file differs from `new`."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    if old != new:
        sys.stdout.writelines(difflib.unified_diff(
            old.splitlines(True), new.splitlines(True), "committed", "made"))
        sys.exit(f"{os.path.basename(path)} is out of date: run "
                 "docs/make-performance.py")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--add"]:
        add(*arguments[1:])
        arguments = []
    checks = arguments[:1] == ["--check"]
    page = arguments[1] if len(arguments) > 1 else PAGE
    machines = load()
    with open(page, encoding="utf-8") as file:
        made = {page: make_page(file.read(), machines)}
    for name, machine in machines.items():
        made[os.path.join(BENCH, name + ".svg")] = make_chart(machine)
    for path, text in made.items():
        if checks:
            check(path, text)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    print(f"{len(machines)} machines")


if __name__ == "__main__":
    main()
