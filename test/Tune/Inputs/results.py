# ===- results.py - tuning parameters do not change results ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# results.py POSENC_RUN MODULE TUNING: runs the functions of the module with
# different tuning parameters and expects equal results. The CPU and the names
# of the parameters are taken from the file TUNING.

import json
import random
import subprocess
import sys

run, module, tuned = sys.argv[1:]
with open(tuned, encoding="ascii") as file:
    tuning = json.load(file)

# These variants cover all paths of the kernels with tensors of some 10 KiB.
variants = [
    {},
    {"prefetch_distance": 0, "stream_from": 0, "block_positions": 1},
    {"prefetch_distance": 64, "prefetch_from": 0, "stream_from": 1},
    {"prefetch_distance": 1024, "prefetch_from": 4096, "stream_from": 0},
    {"prefetch_distance": 65536, "prefetch_from": 0, "stream_from": 8192},
    {"stream_tables_from": 1, "stream_from": 0},
    {"stream_tables_from": 0},
    {"block_positions": 4, "block_below": 16384},
    {"block_positions": 16, "block_below": 512, "prefetch_from": 0},
    {"block_positions": 16, "block_below": 511},
    # Blocks of positions whose rows are processed in several streams.
    {"block_positions": 32, "block_below": 65536, "prefetch_from": 0},
    {"block_positions": 32, "block_below": 65536, "stream_from": 1},
    {"block_positions": 13, "block_below": 65536, "prefetch_from": 0},
    # The rows of Intel's servers.
    {
        "product_tile_vectors": 3, "product_columns": 96, "product_panel_bytes": 98304,
        "product_panel_rows": 128, "product_peel": 1, "product_unroll": 4,
        "product_prefetch": 1, "product_panel_cache": 2,
    },
    {"product_peel": 1, "product_prefetch": 1, "product_dot_columns": 512},
    {
        "attention_tile_rows": 12, "product_tile_rows": 12, "product_columns": 128,
        "product_peel": 1, "product_copied_rows": 120, "product_prefetch": 1,
    },
    # Several blocks of rows, columns and the reduction, with partial ones.
    {
        "product_tile_rows": 12, "product_rows": 40, "product_columns": 32,
        "product_panel_bytes": 16384, "product_peel": 1, "product_copied_rows": 24,
    },
]
# Values of every parameter; a new parameter needs some here. Each value is used
# at least once, in combinations from a generator with a fixed seed.
values = {
    "prefetch_cache": [1, 2],
    "prefetch_in_order": [0, 64, 8192],
    "streams_in_order": [1, 3, 8],
    "prefetch_distance": [0, 64, 4096],
    "streams": [1, 2, 7],
    "stream_ahead": [64, 2048],
    "narrow_streams": [1, 4],
    "narrow_stream_ahead": [64, 3072],
    "block_positions": [1, 8, 32],
    "small_block_positions": [1, 5, 32],
    "block_below": [0, 65536],
    "stream_block_bytes": [0, 65536],
    "stream_from": [0, 1],
    "stream_tables_from": [0, 1],
    "prefetch_from": [0, 4194304],
    "row_vector_bytes": [32, 64],
    "decode_prefetches": [1, 2, 3],
    "decode_row_prefetches": [1, 2],
    "attention_queries": [16, 100, 2048],
    "attention_tile_bytes": [131072, 851968],
    "attention_tasks": [1, 64],
    "attention_prefetch": [0, 1],
    "attention_tile_rows": [4, 8, 12],
    "attention_nest_rows": [16, 32, 48, 64],
    "attention_nest_tiles": [1, 5, 8, 16],
    "product_tile_rows": [4, 6, 8, 12, 14],
    "product_tile_vectors": [2, 3],
    "product_rows": [16, 40, 264],
    "product_panel_rows": [16, 40, 128],
    "product_columns": [32, 64, 128],
    "product_panel_bytes": [16384, 65536],
    "product_peel": [0, 1],
    "product_copied_rows": [0, 5, 24, 120],
    "product_dot_rows": [32, 96, 256],
    "product_dot_columns": [64, 192, 512],
    "product_dot_depth": [64, 192, 512],
    "product_unroll": [1, 3, 4, 8],
    "product_prefetch": [0, 1],
    "product_panel_cache": [1, 2],
    "code_tile_rows": [2, 4, 5, 6],
    "code_tile_vectors": [2, 4],
    "code_unpacking_rows": [1, 3, 4, 6],
    "code_buffer_rows": [1, 5, 4096],
    "code_dot_buffer_rows": [1, 24, 4096],
    "code_buffer_bytes": [4096, 16384, 65536],
    "code_row_bytes": [65536, 786432],
}
assert set(values) == set(tuning["choices"]), "parameters without values to test"
generator = random.Random(7)
for number in range(4):
    variants.append(
        {
            name: some[number] if number < len(some) else generator.choice(some)
            for name, some in sorted(
                values.items(), key=lambda _: generator.random()
            )
        }
    )
    # Treats these small tensors as large ones.
    if number > 1:
        variants[-1]["prefetch_from"] = 0
calls = {
    "rope": ["--input=37x2x64xf32=random:seed=3", "--input=37xi64=random"],
    "small": ["--input=5x1x16xbf16=random:seed=4", "--input=5xi32=iota"],
    "table": ["--input=37xi64=random", "--input=37x64xf32=random"],
}
# Two whole blocks of positions, and one whose last stream has fewer rows.
calls["wide"] = ["--input=75x32x128xf32=random:seed=5", "--input=75xi64=random"]
# The last of four streams has one row instead of two.
calls["apart"] = ["--input=7x75x128xf32=random:seed=6", "--input=75xi64=random"]
# Several tiles of keys, the last one partial, and several tiles of queries.
calls["decode"] = [
    "--input=2x1x8x32xf32=random:seed=1",
    "--input=2x2x301x32xf32=random:seed=2",
    "--input=2x2x301x32xf32=random:seed=3",
    "--input=2xi64=299",
    "--input=2x1x8x32xf32=0",
]
calls["rows"] = [
    "--input=2x1x8x32xbf16=random:seed=1",
    "--input=2x301x2x32xbf16=random:seed=2",
    "--input=2x301x2x32xbf16=random:seed=3",
    "--input=2xi64=299",
    "--input=2x1x8x32xbf16=0",
]
calls["attention"] = [
    "--input=1x301x4x32xf32=random:seed=1",
    "--input=1x301x2x32xf32=random:seed=2",
    "--input=1x301x2x32xf32=random:seed=3",
    "--input=1x301xi64=iota",
    "--input=1x301x4x32xf32=0",
]
# The first key of a tile of queries does not decide where tiles of keys begin.
calls["window"] = [
    "--input=1x901x4x32xf32=random:seed=1",
    "--input=1x901x2x32xf32=random:seed=2",
    "--input=1x901x2x32xf32=random:seed=3",
    "--input=1x901x4x32xf32=0",
]


def applies(names, function):
    """Returns whether a variant may change the code of a function."""
    if function in others:
        # None of them has products.
        return not names or any(not name.startswith("product_") for name in names)
    prefix = {"nested": "attention_nest_", "codes": "code_"}.get(function, "product_")
    return any(name.startswith(prefix) for name in names)


others = set(calls)
# Attention of f64 is decomposed to a nest of loops.
calls["nested"] = [
    "--input=1x301x4x32xf64=random:seed=1",
    "--input=1x301x2x32xf64=random:seed=2",
    "--input=1x301x2x32xf64=random:seed=3",
    "--input=1x301x4x32xf64=0",
]
# No size is a multiple of a tile's.
calls["product"] = calls["accumulate"] = [
    "--input=75x301xf32=random:seed=1",
    "--input=301x100xf32=random:seed=2",
    "--input=75x100xf32=random:seed=3",
]
calls["panels"] = [
    "--input=75x301xf32=random:seed=1",
    "--input=4x301x32xf32=random:seed=2",
]
calls["swapped"] = [
    "--input=301x75xf32=random:seed=1",
    "--input=100x301xf32=random:seed=2",
    "--input=75x100xf32=random:seed=3",
]
calls["narrow"] = [
    "--input=75x301xbf16=random:seed=1",
    "--input=301x100xbf16=random:seed=2",
    "--input=75x100xbf16=random:seed=3",
]
calls["wider"] = [
    "--input=75x301xf64=random:seed=1",
    "--input=301x100xf64=random:seed=2",
    "--input=75x100xf64=random:seed=3",
]
# One block of the reduction, and few rows.
calls["shallow"] = [
    "--input=19x7xf32=random:seed=1",
    "--input=7x100xf32=random:seed=2",
]
# Several cache blocks and tiles of rows.
calls["codes"] = [
    "--input=83x8x64xf32=random:seed=1",
    "--input=8x32x64xi32=random:seed=2",
]
with open(module, encoding="ascii") as file:
    text = file.read()
for function, inputs in calls.items():
    if f"@{function}(" not in text:
        continue
    command = [run, module, "--function=" + function] + inputs
    expected = subprocess.check_output(command, text=True)
    assert "hash" in expected, expected
    for choices in variants:
        if not applies(choices, function):
            continue
        tuning["choices"] = choices
        with open("variant.json", "w", encoding="ascii") as file:
            json.dump(tuning, file)
        actual = subprocess.check_output(
            command + ["--tuning=variant.json", "--opt-level=0"], text=True
        )
        if actual != expected:
            sys.exit(f"{function} with {choices}: {actual} is not {expected}")
