# ===- exported.py - programs of torch.export, compiled and compared --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Exports small random models by torch.export, compiles them through torch-mlir by
`posenc.torch.compile_exported`, and compares the results with PyTorch's.

    python python/benchmarks/exported.py
    python python/benchmarks/exported.py --models llama,vit --compiler build/bin/posenc-compile

needs torch, transformers and torch-mlir; the table was made with 2.15, 5.24 and 20261001.
The models are those of onnx-models.py. The table has, for each model and static or
dynamic sizes, the rotations and attentions that were found of those that the model has,
the largest difference from PyTorch relative to the largest number of the result, and the
number of warnings. The exit status is 1 if one fails, or is not found.
"""

import argparse
import importlib.util
import os
import pathlib
import sys
import tempfile
import time
import warnings

_SPEC = importlib.util.spec_from_file_location(
    "onnx_models", pathlib.Path(__file__).with_name("onnx-models.py"))
MODELS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(MODELS)
RAISED = MODELS.RAISED


def export(name, is_dynamic):
    """Returns the program, and inputs of other sizes than those of a dynamic export."""
    import torch

    inputs = tuple(MODELS.make_inputs(name).values())
    if not is_dynamic:
        return torch.export.export(MODELS.make_model(name), inputs), inputs
    dim = torch.export.Dim.DYNAMIC
    axes = {0: dim} if name in MODELS.IMAGES else {0: dim, 1: dim}
    program = torch.export.export(MODELS.make_model(name), inputs,
                                  dynamic_shapes=((axes,) * len(inputs),))
    smaller = (lambda x: x[:1]) if name in MODELS.IMAGES else (lambda x: x[:1, :-1])
    return program, tuple(smaller(x).contiguous() for x in inputs)


def measure(name, is_dynamic, options, folder):
    """Returns the columns of a row, and whether it is as expected."""
    import posenc
    import posenc.torch
    from posenc._torch_export import _write_linalg

    program, inputs = export(name, is_dynamic)
    path = pathlib.Path(folder) / f"{name}-{'dynamic' if is_dynamic else 'static'}.mlir"
    path.write_text(_write_linalg(program, 1 << 24)[0], encoding="utf-8")
    *found, _, left = RAISED.inspect(options.compiler, path, folder)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", posenc.CompileWarning)
        function = posenc.torch.compile_exported(program, opt_level=0)
    seconds = time.perf_counter() - start
    result, reference = function(*inputs), program.module()(*inputs).detach()
    difference = RAISED.compare(result.numpy(), reference.numpy())
    columns, is_right = RAISED.judge(found, MODELS.count_expected(name), difference,
                                     options.tolerance)
    warned = sum(issubclass(one.category, posenc.CompileWarning) for one in caught)
    return [*columns, warned, f"{seconds:.1f}", left], is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS.MODELS))
    parser.add_argument("--sizes", default="static,dynamic")
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--folder", help="keeps the linalg of the graphs here")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    os.environ["HF_HUB_OFFLINE"] = "1"
    passed = total = 0
    print("| model | sizes | rotations | attentions | result | difference | warnings "
          "| seconds | left alone |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = options.folder or folder
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        for name in options.models.split(","):
            for sizes in options.sizes.split(","):
                total += 1
                try:
                    columns, is_right = measure(name, sizes == "dynamic", options, folder)
                except Exception as error:  # Whatever the exporter raises.
                    text = str(error).strip().splitlines() or [type(error).__name__]
                    columns = ["", "", f"fails: {text[0][:160]}"] + [""] * 4
                    is_right = False
                passed += is_right
                print("|", name, "|", sizes, "|", " | ".join(map(str, columns)), "|",
                      flush=True)
    print(f"\n{passed} of {total} are as expected")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
