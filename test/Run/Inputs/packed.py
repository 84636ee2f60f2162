# ===- packed.py - prepacked matrices against NumPy ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""packed.py POSENC-COMPILE FOLDER: products with matrices that the caller prepacks
or that are constants, which must give the bits of the product with the plain
matrix; pack, unpack, pad, concat and gather."""

import ctypes
import sys

import numpy as np
import programs

suite = programs.Suite(*sys.argv[1:])
random = np.random.default_rng(17)
LIMITS = {"f64": 1e-14, "f32": 2e-6, "f16": 1e-3, "bf16": 8e-3}


def floats(kind, *shape):
    """Returns random numbers of a type, and their values in f64."""
    values = random.standard_normal(shape).astype(np.float32)
    if kind == "bf16":
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        return bits, programs.from_bf16(bits).astype(np.float64)
    array = values.astype(programs.TYPES[kind])
    return array, array.astype(np.float64)


def pack(library, matrix):
    """Packs a matrix with the library's own function."""
    function, = (one for one in library.functions if one["name"].startswith("f_pack_"))
    output, = function["outputs"]
    panels = np.full(output["shape"], 77, matrix.dtype)
    arguments = [ctypes.c_void_p(matrix.ctypes.data), ctypes.c_void_p(panels.ctypes.data)]
    if "workspace" in function:
        measure = library.symbol(function["name"] + "_workspace")
        measure.restype = ctypes.c_int64
        memory = np.zeros(measure(), np.uint8)
        arguments.append(ctypes.c_void_p(memory.ctypes.data))
    code = library.symbol(function["name"])(*arguments)
    assert code == 0, f"packing returned {code}"
    return panels


def arguments():
    for kind, rows, transposes in (("f32", 33, False), ("f32", 1, True), ("f64", 20, False),
                                   ("f16", 9, True), ("bf16", 33, False), ("f32", 600, True)):
        for k, n in ((100, 70), (300, 64), (7, 5)):
            shape = (n, k) if transposes else (k, n)
            matrix = f"tensor<{shape[0]}x{shape[1]}x{kind}>"
            x, wide_x = floats(kind, rows, k)
            w, wide_w = floats(kind, *shape)
            init, wide_init = floats(kind, rows, n)
            right = "k, n" if not transposes else "n, k"

            def program(attribute):
                return f"""
func.func @f(%x: tensor<?x{k}x{kind}>, %w: {matrix} {attribute},
             %o: tensor<?x{n}x{kind}>) -> tensor<?x{n}x{kind}> {{
  %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> ({right})>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %w : tensor<?x{k}x{kind}>, {matrix})
    outs(%o : tensor<?x{n}x{kind}>) -> tensor<?x{n}x{kind}>
  return %r : tensor<?x{n}x{kind}>
}}"""
            name = f"{kind} {rows}x{k}x{n}"
            expected = wide_init + wide_x @ (wide_w.T if transposes else wide_w)
            wanted, = suite.check(name, program(""), [x, w, init], [expected], LIMITS[kind])
            for target in programs.TARGETS:
                suite.count += 1
                library = suite.compile(f"packed{suite.count}", program("{posenc.packed}"),
                                        target)
                result, = library.call([x, pack(library, w), init])
                if not np.array_equal(result, wanted):
                    suite.wrong += 1
                    print(f"{name}: packed for {target}")


def constants():
    k, n = 40, 50
    w = floats("f32", k, n)[0]
    x, init = floats("f32", 21, k)[0], floats("f32", 21, n)[0]
    text = "".join(f"{byte:02X}" for byte in w.tobytes())
    suite.check("constant", f"""
func.func @f(%x: tensor<?x{k}xf32>, %o: tensor<?x{n}xf32>) -> tensor<?x{n}xf32> {{
  %w = arith.constant dense<"0x{text}"> : tensor<{k}x{n}xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>)
    outs(%o : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  return %r : tensor<?x{n}xf32>
}}""", [x, init], [init + x.astype(np.float64) @ w], 2e-6)


def shapes():
    w = floats("f32", 100, 70)[0]
    packed = np.zeros((100, 96), np.float32)
    packed[:, :70] = w
    packed = packed.reshape(100, 3, 32).transpose(1, 0, 2)
    suite.check("pack", """
func.func @f(%w: tensor<100x70xf32>) -> tensor<3x100x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x100x32xf32>
  %p = linalg.pack %w padding_value(%zero : f32) outer_dims_perm = [1, 0]
    inner_dims_pos = [1] inner_tiles = [32] into %e
    : tensor<100x70xf32> -> tensor<3x100x32xf32>
  return %p : tensor<3x100x32xf32>
}""", [w], [packed], 0)
    suite.check("unpack", """
func.func @f(%p: tensor<3x100x32xf32>) -> tensor<100x70xf32> {
  %e = tensor.empty() : tensor<100x70xf32>
  %w = linalg.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [1]
    inner_tiles = [32] into %e : tensor<3x100x32xf32> -> tensor<100x70xf32>
  return %w : tensor<100x70xf32>
}""", [np.ascontiguousarray(packed)], [w], 0)
    x, y = floats("f32", 13, 70)[0], floats("f32", 8, 70)[0]
    suite.check("pad", """
func.func @f(%x: tensor<?x70xf32>) -> tensor<?x80xf32> {
  %half = arith.constant 0.5 : f32
  %p = tensor.pad %x low[1, 2] high[0, 8] {
  ^bb0(%i: index, %j: index):
    tensor.yield %half : f32
  } : tensor<?x70xf32> to tensor<?x80xf32>
  return %p : tensor<?x80xf32>
}""", [x], [np.pad(x, ((1, 0), (2, 8)), constant_values=0.5)], 0)
    suite.check("concat", """
func.func @f(%x: tensor<?x70xf32>, %y: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %r = tensor.concat dim(0) %x, %y
    : (tensor<?x70xf32>, tensor<?x70xf32>) -> tensor<?x70xf32>
  return %r : tensor<?x70xf32>
}""", [x, y], [np.concatenate([x, y])], 0)
    rows = random.integers(0, 13, 29)
    suite.check("gather", """
func.func @f(%t: tensor<?x70xf32>, %i: tensor<?xi64>) -> tensor<?x70xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x70xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>,
      affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<?xi64>) outs(%e : tensor<?x70xf32>) {
  ^bb0(%p: i64, %o: f32):
    %q = arith.index_cast %p : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%q, %j] : tensor<?x70xf32>
    linalg.yield %v : f32
  } -> tensor<?x70xf32>
  return %r : tensor<?x70xf32>
}""", [x, rows], [x[rows]], 0)


arguments()
constants()
shapes()
suite.finish()
