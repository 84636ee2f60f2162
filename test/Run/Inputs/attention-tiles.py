# ===- attention-tiles.py - attention tiled by structured operations --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
# Tiles attention with transform.structured operations, and compares the results
# with those of the whole operations.
#   attention-tiles.py OPT RUN MODULE FOLDER
import pathlib
import re
import subprocess
import sys

OPT, RUN, MODULE = sys.argv[1:4]
FOLDER = pathlib.Path(sys.argv[4])

SCHEDULE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%%root: !transform.any_op {transform.readonly}) {
    %%op = transform.structured.match ops{["%s"]} in %%root : (!transform.any_op) -> !transform.any_op
    %s
    transform.yield
  }
}
"""
FORALL = (
    "%%t, %%l = transform.structured.tile_using_forall %%op tile_sizes %s"
    " : (!transform.any_op) -> (!transform.any_op, !transform.any_op)"
)
SPLITS = (
    "%%f:3, %%p, %%m:5, %%l = transform.structured.tile_reduction_using_forall %%op"
    " by tile_sizes = %s : (!transform.any_op) -> ("
    + ", ".join(["!transform.any_op"] * 10)
    + ")"
)

# Tile sizes of batch, heads and queries; of heads alone for ragged batches; of
# heads, queries and keys for KV splits.
CASES = {
    "full": ([[1, 3, 5], [2, 6], [0, 1], [0, 0, 4]],
             "2x13x6x16xf32=random 2x20x2x16xf32=random 2x20x2x8xf32=random 2x13x6x8xf32=0"),
    "causal": ([[1, 3, 5], [2, 6, 13], [0, 1], [0, 0, 4]],
               "3x13x6x16xf32=random 3x20x2x16xf32=random 3x20x2x8xf32=random"
               " 3x13x6x8xf32=0"),
    "cached": ([[1, 3, 5], [2, 6], [0, 0, 4]],
               "3x6x13x16xbf16=random 3x2x20x16xi8=random 3x2x20x8xi8=random"
               " 3x2x20xf32=0.01 3x1x20xf32=0.02 3xi64=17 3x1x13x20xf32=random"
               " 6xf32=random 3x6x13x8xbf16=0 3x6x13xf32=0"),
    "paged": ([[1, 3, 5], [2, 6], [0, 0, 4]],
              "3x13x6x16xf32=random 3x13xi64=iota 15x2x4x16xf32=random"
              " 15x2x4x8xf32=random 3x5xi32=iota 3xi64=17 16xf32=random 3x13x6x8xf32=0"),
    "ragged": ([[3], [1]],
               "13x6x16xf32=random 13x2x16xf32=random 13x2x8xf32=random 3xi64=iota:13"
               " 13x6x8xf32=0"),
    "parts": ([[0, 0, 4], [0, 0, 5]],
              "2x5x16xf32=random 14x16xf32=random 14x8xf32=random 2x5x8xf32=random"
              " 2x5xf32=random 2x5xf32=2"),
}


def get_inputs(text):
    inputs = []
    for item in text.split():
        if item.endswith("=iota:13"):
            # Sequences of 0, 5 and 8 tokens.
            import array
            starts = array.array("q", [0, 5, 13])
            header = ("{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
                      .ljust(117) + "\n").encode()
            path = FOLDER / "starts.npy"
            path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
                             + header + starts.tobytes())
            item = "@%s" % path
        inputs.append("--input=" + item)
    return inputs


def run(path, function, inputs, results, option):
    files = ["--%s=@%s/%s.%d.npy" % (option, FOLDER, function, i) for i in range(results)]
    command = [RUN, str(path), "--opt-level=0", "--function=" + function] + inputs + files
    if function == "parts" and option == "expected_output":
        # The sums over keys have another order.
        command.append("--max-ulp=8")
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode


def tile(text, function, sizes):
    operation, action = ("posenc.online_attention", SPLITS) if function == "parts" else (
        "posenc.attention", FORALL)
    both = text + SCHEDULE % (operation, action % sizes)
    done = subprocess.run([OPT, "-", "--transform-interpreter", "--canonicalize", "--cse"],
                          input=both, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout[: done.stdout.index("  module attributes {transform")] + "}\n"


def main():
    module = pathlib.Path(MODULE).read_text()
    alias = re.search(r"^#.*\n", module, re.M).group(0)
    count = wrong = found = 0
    for function, (all_sizes, text) in CASES.items():
        body = re.search(r"func\.func @%s\(.*?\n}\n" % function, module, re.S).group(0)
        inputs = get_inputs(text)
        results = {"cached": 2, "parts": 3}.get(function, 1)
        whole = FOLDER / "whole.mlir"
        whole.write_text(alias + body)
        if run(whole, function, inputs, results, "output"):
            sys.exit("cannot run @" + function)
        for sizes in all_sizes:
            tiled = tile(whole.read_text(), function, sizes)
            path = FOLDER / "tiled.mlir"
            path.write_text(tiled)
            count += 1
            if run(path, function, inputs, results, "expected_output"):
                print("wrong: @%s by %s" % (function, sizes))
                wrong += 1
            # Control: without trailing_queries, a tile's queries have wrong positions.
            fault = re.sub(r" trailing_queries\(%\w+\)", "", tiled)
            if fault != tiled and function != "full":
                path.write_text(fault)
                found += run(path, function, inputs, results, "expected_output") == 3
    print("%d tilings, %d wrong, %d faults found" % (count, wrong, found))


main()
