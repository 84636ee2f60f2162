# ===- compile-time.py - time and memory of compilations by size ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles graphs of growing sizes, and prints the CPU time and the memory.

    python python/benchmarks/compile-time.py --compiler build/bin/posenc-compile
    python python/benchmarks/compile-time.py --graphs layers:1,16,64 --emit=llvm
    python python/benchmarks/compile-time.py --svg curve.svg

A row has the number of nodes, the seconds of CPU time, the largest memory in MiB, and the
exponent: the slope of the logarithm of the time since the row before, 1 for a linear
growth. The last row of a kind has the exponent of all its rows, fitted without the time
of the smallest graph. The sizes of --graphs are those of large_graphs.py. The default
goes to 50,000 nodes, and takes minutes. It needs no package.
"""

import argparse
import math
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "test" / "Compile" /
                       "Inputs"))
import large_graphs

GRAPHS = ("relu:1,1000,4000,16000,50000 branches:1,500,2000,8000 "
          "attention:1,4,16,64,256 layers:1,2,4,8,16,32,64 names:1,64,256,1024 "
          "constants:1,1000,4000,16000 matmul:1,64,256,1024 sizes:1,16,64,256 "
          "stablehlo:1,1000,4000,16000,50000 linalg:1,1000,4000,16000,50000")


def fit(rows):
    """Returns the slope of the logarithm of the time over that of the size."""
    base = rows[0][1]
    points = [(math.log(nodes), math.log(seconds - base))
              for nodes, seconds, _ in rows[1:] if seconds > base + 0.02]
    if len(points) < 2:
        return None
    x = sum(point[0] for point in points) / len(points)
    y = sum(point[1] for point in points) / len(points)
    return (sum((a - x) * (b - y) for a, b in points) /
            sum((a - x) ** 2 for a, _ in points))


def run(kind, sizes, options, folder):
    rows = []
    for n in sizes:
        path, nodes = large_graphs.write(folder, kind, n)
        command = [options.compiler, path, "-o", os.path.join(folder, "libgraph.so"),
                   *options.flags]
        seconds, memory, error = large_graphs.measure(command)
        os.remove(path)
        if error:
            print(f"| {kind} | {nodes} | {error.splitlines()[0][:80]} | | |")
            return rows, False
        slope = ""
        if rows and nodes > rows[-1][0]:
            slope = f"{math.log(seconds / rows[-1][1]) / math.log(nodes / rows[-1][0]):.2f}"
        rows.append((nodes, seconds, memory))
        print(f"| {kind} | {nodes} | {seconds:.2f} | {memory:.0f} | {slope} |", flush=True)
    slope = fit(rows)
    if slope is not None:
        print(f"| {kind} | fit | | | {slope:.2f} |")
    return rows, True


def draw(curves):
    """Returns an SVG of seconds over nodes, both logarithmic."""
    width, height, margin = 720, 480, 60
    points = [row for rows in curves.values() for row in rows]
    low_x, high_x = 0, math.ceil(math.log10(max(row[0] for row in points)))
    low_y = math.floor(math.log10(min(row[1] for row in points)))
    high_y = math.ceil(math.log10(max(row[1] for row in points)))

    def at(nodes, seconds):
        x = (math.log10(nodes) - low_x) / max(high_x - low_x, 1)
        y = (math.log10(seconds) - low_y) / max(high_y - low_y, 1)
        return (margin + x * (width - 3 * margin),
                height - margin - y * (height - 2 * margin))

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">']
    for power in range(low_x, high_x + 1):
        x, y = at(10 ** power, 10 ** low_y)
        lines.append(f'<text x="{x:.0f}" y="{y + 20:.0f}" text-anchor="middle">'
                     f"{10 ** power:,}</text>")
    for power in range(low_y, high_y + 1):
        x, y = at(1, 10.0 ** power)
        lines.append(f'<text x="{x - 8:.0f}" y="{y + 4:.0f}" text-anchor="end">'
                     f"{10.0 ** power:g} s</text>")
    for number, (kind, rows) in enumerate(curves.items()):
        color = f"hsl({number * 360 // len(curves)} 70% 40%)"
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in
                        (at(nodes, seconds) for nodes, seconds, _ in rows))
        x, y = at(rows[-1][0], rows[-1][1])
        lines += [f'<polyline points="{path}" fill="none" stroke="{color}"/>',
                  f'<text x="{x + 6:.0f}" y="{y + 4:.0f}" fill="{color}">{kind}</text>']
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--graphs", default=GRAPHS,
                        help="kinds with sizes: 'relu:1,1000 layers:1,16'")
    parser.add_argument("--svg", help="the file of a drawing")
    options, options.flags = parser.parse_known_args()
    print("| graph | nodes | CPU, s | memory, MiB | exponent |")
    print("|---|---|---|---|---|")
    curves, passed = {}, True
    with tempfile.TemporaryDirectory() as folder:
        for graph in options.graphs.split():
            kind, _, sizes = graph.partition(":")
            rows, done = run(kind, map(int, sizes.split(",")), options, folder)
            passed &= done
            if rows:
                curves[kind] = rows
    if options.svg and curves:
        pathlib.Path(options.svg).write_text(draw(curves), encoding="utf-8")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
