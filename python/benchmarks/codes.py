# ===- codes.py - products with quantized weights --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Measures products with quantized weights on one thread, in turns with ONNX Runtime and
with reads of memory.

    taskset -c 1 python python/benchmarks/codes.py --rows 1 4 16 512

needs onnx and onnxruntime. A model adds the products of its input with several matrices,
of at least twice the last-level cache together, so that each is read from memory. A line
has medians of CPU time: `bandwidth` is that of reading as many bytes as the weights have,
relative to the time of Posenc, and `onnxruntime` its time, relative to Posenc's.
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np

# Models: the operator, bits of a code, accuracy level, and whether zero points are given.
KINDS = {"int4": ("MatMulNBits", 4, 0, False), "int4-zeros": ("MatMulNBits", 4, 0, True),
         "int4-level4": ("MatMulNBits", 4, 4, False), "int8": ("MatMulNBits", 8, 0, False),
         "int8-level4": ("MatMulNBits", 8, 4, False), "dynamic": ("MatMulInteger", 8, 0, False),
         "f32": ("MatMul", 32, 0, False)}


def make_model(path, kind, depth, columns, block, count):
    """Writes the model and returns the bytes of its weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    op, bits, level, zeros = KINDS[kind]
    random, nodes, constants, total = np.random.default_rng(1), [], [], 0
    blocks = -(-depth // block)

    def constant(name, array):
        nonlocal total
        constants.append(numpy_helper.from_array(array, name))
        total += array.nbytes
        return name

    if op == "MatMulInteger":
        nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["codes", "scale", "zero"]))
    for i in range(count):
        if op == "MatMul":
            weight = constant(f"w{i}", random.standard_normal((depth, columns), np.float32))
            nodes.append(helper.make_node(op, ["x", weight], [f"y{i}"]))
            continue
        if op == "MatMulInteger":
            weight = constant(f"w{i}", random.integers(-128, 128, (depth, columns), np.int8))
            nodes += [helper.make_node(op, ["codes", weight, "zero"], [f"i{i}"]),
                      helper.make_node("Cast", [f"i{i}"], [f"f{i}"], to=TensorProto.FLOAT),
                      helper.make_node("Mul", [f"f{i}", "scale"], [f"y{i}"])]
            continue
        inputs = ["x", constant(f"w{i}", random.integers(
            0, 256, (columns, blocks, block * bits // 8), np.uint8)),
            constant(f"s{i}", random.random((columns, blocks), np.float32) / 50)]
        if zeros:
            inputs.append(constant(f"z{i}", random.integers(
                0, 256, (columns, -(-blocks * bits // 8)), np.uint8)))
        nodes.append(helper.make_node(
            op, inputs, [f"y{i}"], domain="com.microsoft", K=depth, N=columns, bits=bits,
            block_size=block, accuracy_level=level))
    nodes.append(helper.make_node("Sum", [f"y{i}" for i in range(count)], ["y"]))
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size])
               for name, size in (("x", depth), ("y", columns))]
    graph = helper.make_graph(nodes, "main", tensors[:1], tensors[1:], constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return total


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--shape", nargs=2, type=int, default=[2048, 8192],
                        metavar=("DEPTH", "COLUMNS"))
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--megabytes", type=int, default=100, help="of weights at least")
    parser.add_argument("--turns", type=int, default=9)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    import onnxruntime
    import posenc

    depth, columns = options.shape
    memory = np.ones(128 << 18, np.int32)
    print("| weights | rows | ms | GB/s | bandwidth | onnxruntime | largest difference |\n"
          "|---|---|---|---|---|---|---|")
    for kind in options.kinds:
        _, bits, _, _ = KINDS[kind]
        # With a scale of 4 bytes for each block.
        size = depth * columns * (bits / 8 + (4 / options.block if bits < 32 else 0))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            total = make_model(path, kind, depth, columns, options.block,
                               max(1, round(options.megabytes * 1e6 / size + 0.5)))
            ours = posenc.compile(path)
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = settings.inter_op_num_threads = 1
            theirs = onnxruntime.InferenceSession(path, settings,
                                                  providers=["CPUExecutionProvider"])
            for rows in options.rows:
                x = np.random.default_rng(2).standard_normal((rows, depth), np.float32)
                calls = [lambda: ours.main(x), lambda: theirs.run(None, {"x": x})[0], memory.max]
                results = [call() for call in calls[:2]]
                times = [[seconds(call) for call in calls] for _ in range(options.turns)]
                our, their, read = (statistics.median(column) for column in zip(*times))
                difference = abs(results[0] - results[1]).max() / abs(results[1]).max()
                print(f"| {kind} | {rows} | {our * 1e3:.2f} | {total / our / 1e9:.1f} "
                      f"| {read / memory.nbytes * total / our:.2f} | {their / our:.2f} "
                      f"| {difference:.1e} |", flush=True)


if __name__ == "__main__":
    main()
