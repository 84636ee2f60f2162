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
has medians of CPU time. The limit of a product is the longer one of two times, which are
measured in the same turns: that of reading as many bytes as the weights have, and that of
as many multiply-adds on registers, of f32 or of bytes. `share` is this limit relative to
the time of Posenc, `bound` which of the two it is, and `onnxruntime` its time, relative to
Posenc's.
"""

import argparse
import math
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


# Multiply-adds of 12 vectors of 16 lanes in a loop, of f32 and of bytes.
PEAK = """
func.func @{name}(%x: tensor<32x{type}>) -> tensor<16x{type}> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %last = arith.constant dense<24> : vector<16xi32>
  %c8 = arith.constant dense<8> : vector<16xi32>
  %second = arith.constant dense<16> : vector<16xi32>
  %byte = arith.constant dense<255> : vector<16xi32>
  %count = arith.constant {count} : index
  %zero = arith.constant {zero} : {type}
  %a = vector.transfer_read %x[%c0], %zero {{in_bounds = [true]}}
    : tensor<32x{type}>, vector<16x{type}>
  %b = vector.transfer_read %x[%c16], %zero {{in_bounds = [true]}}
    : tensor<32x{type}>, vector<16x{type}>
  %all:12 = scf.for %i = %c0 to %count step %c1 iter_args({start}) -> ({types}) {{
{body}
    scf.yield {next} : {types}
  }}
{sum}
  %e = tensor.empty() : tensor<16x{type}>
  %r = vector.transfer_write %s12, %e[%c0] {{in_bounds = [true]}}
    : vector<16x{type}>, tensor<16x{type}>
  return %r : tensor<16x{type}>
}}
"""
# The product of each signed byte of %a and the unsigned one of %b is added to %v.
DOT = """
    %x0_{i} = arith.shli %a, %last : {v}
    %x1_{i} = arith.shrsi %x0_{i}, %last : {v}
    %x2_{i} = arith.andi %b, %byte : {v}
    %x3_{i} = arith.muli %x1_{i}, %x2_{i} : {v}
    %x4_{i} = arith.addi %v{i}, %x3_{i} : {v}
    %y0_{i} = arith.shli %a, %second : {v}
    %y1_{i} = arith.shrsi %y0_{i}, %last : {v}
    %y2_{i} = arith.shrui %b, %c8 : {v}
    %y3_{i} = arith.andi %y2_{i}, %byte : {v}
    %y4_{i} = arith.muli %y1_{i}, %y3_{i} : {v}
    %y5_{i} = arith.addi %x4_{i}, %y4_{i} : {v}
    %z0_{i} = arith.shli %a, %c8 : {v}
    %z1_{i} = arith.shrsi %z0_{i}, %last : {v}
    %z2_{i} = arith.shrui %b, %second : {v}
    %z3_{i} = arith.andi %z2_{i}, %byte : {v}
    %z4_{i} = arith.muli %z1_{i}, %z3_{i} : {v}
    %z5_{i} = arith.addi %y5_{i}, %z4_{i} : {v}
    %w0_{i} = arith.shrsi %a, %last : {v}
    %w1_{i} = arith.shrui %b, %last : {v}
    %w2_{i} = arith.muli %w0_{i}, %w1_{i} : {v}
    %n{i} = arith.addi %z5_{i}, %w2_{i} : {v}"""
PEAK_COUNT, PEAK_VECTORS = 100_000, 12


def make_peak(name):
    """Returns a function that computes multiply-adds on registers, and their number."""
    import posenc

    element, step, add, zero, width = {
        "fma": ("f32", "    %n{i} = math.fma %a, %b, %v{i} : {v}", "addf", "0.0", 1),
        "dot": ("i32", DOT, "addi", "0", 4)}[name]
    vector, numbers = f"vector<16x{element}>", range(PEAK_VECTORS)
    text = PEAK.format(
        name=name, type=element, zero=zero, count=PEAK_COUNT,
        start=", ".join(f"%v{i} = %a" for i in numbers), types=", ".join([vector] * len(numbers)),
        body="\n".join(step.format(i=i, v=vector) for i in numbers),
        next=", ".join(f"%n{i}" for i in numbers),
        sum="\n".join([f"  %s0 = arith.{add} %a, %a : {vector}"] + [
            f"  %s{i + 1} = arith.{add} %s{i}, %all#{i} : {vector}" for i in numbers]))
    function = getattr(posenc.compile(text.encode()), name)
    x = np.arange(32).astype(np.float32 if element == "f32" else np.int32)
    return lambda: function(x), PEAK_COUNT * PEAK_VECTORS * 16 * width


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
    peaks = {name: make_peak(name) for name in ("fma", "dot")}
    print("| weights | rows | ms | GB/s | share | bound | onnxruntime | largest difference |\n"
          "|---|---|---|---|---|---|---|---|")
    for kind in options.kinds:
        op, bits, level, _ = KINDS[kind]
        unit = "dot" if level == 4 or op == "MatMulInteger" else "fma"
        peak, peak_products = peaks[unit]
        # With a scale of 4 bytes for each block.
        size = depth * columns * (bits / 8 + (4 / options.block if bits < 32 else 0))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            count = max(1, math.ceil(options.megabytes * 1e6 / size))
            total = make_model(path, kind, depth, columns, options.block, count)
            ours = posenc.compile(path)
            settings = onnxruntime.SessionOptions()
            settings.intra_op_num_threads = settings.inter_op_num_threads = 1
            theirs = onnxruntime.InferenceSession(path, settings,
                                                  providers=["CPUExecutionProvider"])
            for rows in options.rows:
                x = np.random.default_rng(2).standard_normal((rows, depth), np.float32)
                calls = [lambda: ours.main(x), lambda: theirs.run(None, {"x": x})[0], memory.max,
                         peak]
                results = [call() for call in calls[:2]]
                times = [[seconds(call) for call in calls] for _ in range(options.turns)]
                our, their, read, products = (statistics.median(c) for c in zip(*times))
                limits = {"memory": read / memory.nbytes * total,
                          unit: products / peak_products * count * rows * depth * columns}
                bound = max(limits, key=limits.get)
                difference = abs(results[0] - results[1]).max() / abs(results[1]).max()
                print(f"| {kind} | {rows} | {our * 1e3:.2f} | {total / our / 1e9:.1f} "
                      f"| {limits[bound] / our:.2f} | {bound} | {their / our:.2f} "
                      f"| {difference:.1e} |", flush=True)


if __name__ == "__main__":
    main()
