#!/usr/bin/env python3
# ===- compare-devices.py - equal bits on two devices -----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Runs the functions of a module on the CPU and on a device:

    compare-devices.py POSENC_RUN MODULE.mlir CPU.so DEVICE.so DRIVER_DIR DEVICE

with inputs of one of two sizes, which test/Inputs/draw.py draws, and compares the hashes of
their results. The libraries are compiled from the module. DRIVER_DIR contains the device's
driver.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Inputs"))
import draw

# The values of a tensor's dynamic sizes, by their number.
SIZES = [
    {1: [5], 2: [2, 5], 3: [2, 5, 3]},
    {1: [75], 2: [1, 37], 3: [1, 37, 3]},
]


def make_inputs(signature, sizes):
    """Returns an --input option for each argument of the function."""
    inputs = []
    for number, type_name in enumerate(re.findall(r"%\w+: ([\w<>?]+)", signature)):
        match = re.fullmatch(r"tensor<(.*)>", type_name)
        if not match:
            inputs.append("--input=1000")
            continue
        *dims, element = match.group(1).split("x")
        rest = list(sizes.get(dims.count("?"), []))
        shape = [rest.pop(0) if dim == "?" else dim for dim in dims]
        values = "iota" if element.startswith("i") else f"random:seed={number}"
        text = "x".join([*map(str, shape), element])
        inputs.append(f"--input={text}={values}")
    return inputs


def main():
    program, module, on_cpu, on_device, drivers, device = sys.argv[1:]
    with open(module, encoding="utf-8") as file:
        functions = re.findall(r"func\.func @(\w+)\((.*?)\) ->", file.read())
    files = {"cpu": on_cpu, device: on_device}
    equal = 0
    drawn = draw.draw_values(f"sizes of {device}", [name for name, _ in functions], SIZES)
    for name, signature in functions:
        for sizes in drawn[name]:
            hashes = []
            for on in ["cpu", device]:
                result = subprocess.run(
                    [program, files[on], f"--function={name}", f"--device={on}"]
                    + make_inputs(signature, sizes),
                    env={**os.environ, "LD_LIBRARY_PATH": drivers},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if result.returncode != 0 or "hash" not in result.stdout:
                    sys.exit(f"{name} on {on}: {result.stderr}")
                hashes.append(result.stdout)
            if hashes[0] != hashes[1]:
                sys.exit(f"{name} differs:\n{hashes[0]}{hashes[1]}")
            equal += 1
    print(f"{equal} equal")


if __name__ == "__main__":
    main()
