# ===- onnx-node-tests.py - ONNX's own tests of operators ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles and runs the node tests of the package onnx whose operator the import has.

    python python/benchmarks/onnx-node-tests.py --operators Attention,RotaryEmbedding

needs onnx 1.23.2. The tests take sizes, axes and bounds as inputs, on which the shapes of
the results depend. If a model is refused for that, these inputs become initializers, as
exporters write them. Inputs of codes become initializers, too, and outputs of codes are
dequantized, since neither is supported in signatures. Prints the tests that are refused,
with the reason, and those with wrong results, and ends with 1 if there are any of the
latter.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import posenc
import search_limits
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def find_operators():
    """The operators of the default domain that docs/onnx.md names."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/onnx.md"
    return set(re.findall(r"`([A-Z]\w+)`", page.read_text(encoding="utf-8")))


def to_array(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return numpy.asarray(value)


def bake(model, inputs):
    """Makes all inputs but the first initializers; all, for an operator on sizes."""
    baked = onnx.ModelProto()
    baked.CopyFrom(model)
    node = model.graph.node[0]
    kept = [] if node.op_type in ("ConstantOfShape", "Range") else [node.input[0]]
    del baked.graph.input[:]
    for value, array in zip(model.graph.input, inputs):
        if value.name in kept:
            baked.graph.input.append(value)
        else:
            baked.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return baked


CODES = (onnx.TensorProto.INT16, onnx.TensorProto.UINT16,
         onnx.TensorProto.INT4, onnx.TensorProto.UINT4)


def has_codes(value):
    return value.type.tensor_type.elem_type in CODES


def decode(model, inputs):
    """Makes inputs of codes initializers, and outputs of codes floats."""
    decoded = onnx.ModelProto()
    decoded.CopyFrom(model)
    graph = decoded.graph
    del graph.input[:]
    for value, array in zip(model.graph.input, inputs):
        if has_codes(value) or value.name != model.graph.node[0].input[0]:
            graph.initializer.append(onnx.helper.make_tensor(
                value.name, value.type.tensor_type.elem_type, array.shape,
                array.astype(int).ravel() if has_codes(value) else array.ravel()))
        else:
            graph.input.append(value)
    graph.initializer.append(numpy_helper.from_array(numpy.float32(1), "one"))
    for value in graph.output:
        if has_codes(value):
            graph.node.append(onnx.helper.make_node("DequantizeLinear", [value.name, "one"],
                                                    [f"{value.name}_floats"]))
            value.name += "_floats"
    return decoded


def agrees(got, expected):
    if got.shape != expected.shape:
        return False
    is_small = expected.dtype.itemsize <= 2 and expected.dtype.kind not in "biu"
    return numpy.allclose(got.astype(float), expected.astype(float), equal_nan=True,
                          rtol=2e-2 if is_small else 1e-3, atol=5e-3 if is_small else 1e-5)


def run(case, compiler, folder):
    """Returns `ok`, or a message that begins with `refused` or `wrong`."""
    path, library = folder / "model.onnx", folder / f"lib{case.name}.so"
    if any(isinstance(value, (list, dict)) or value is None
           for part in case.data_sets[0] for value in part):
        return "refused: a sequence or an optional value"
    inputs, expected = ([to_array(value) for value in part] for part in case.data_sets[0])

    def build(model):
        onnx.save(model, path)
        try:
            result = subprocess.run([compiler, path, "-o", library, "--opt-level=0",
                                     "--no-warnings"], capture_output=True, text=True,
                                    timeout=search_limits.COMPILER_SECONDS)
        except subprocess.TimeoutExpired:
            return -1, "the compiler does not end"
        lines = result.stderr.removeprefix(f"{path}: ").splitlines()
        return result.returncode, lines[0] if lines else ""

    model = case.model
    code, message = build(model)
    if code == 1 and any(map(has_codes, (*model.graph.input, *model.graph.output))):
        model = decode(case.model, inputs)
        code, message = build(model)
    elif code == 1 and re.search("depend on data|depends on data|constant", message):
        model = bake(case.model, inputs)
        code, message = build(model)
    if code:
        return f"{'refused' if code == 1 else 'wrong'}: {message}"
    names = [value.name for value in model.graph.input]
    inputs = [array for value, array in zip(case.model.graph.input, inputs)
              if value.name in names]
    kernels = posenc.load(library)
    try:
        results = getattr(kernels, next(iter(kernels)))(*inputs)
    except posenc.Error as error:
        return f"wrong: {error}"
    if not isinstance(results, (tuple, list)):
        results = [results]
    if all(agrees(numpy.asarray(got), want) for got, want in zip(results, expected)):
        return "ok"
    return "wrong: the results differ"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", help="default: all that docs/onnx.md names")
    parser.add_argument("--compiler", default="posenc-compile")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    operators = set(options.operators.split(",")) if options.operators \
        else find_operators()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in collect_testcases(None):
            if case.model is None or len(case.model.graph.node) != 1 or \
                    case.model.graph.node[0].op_type not in operators:
                continue
            with search_limits.end_search():
                result = run(case, options.compiler, pathlib.Path(folder))
            counts[result.split(":")[0]] += 1
            if result != "ok":
                print(f"{case.name}: {result}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
