# ===- fused-ropes.py - ropes fused with other operations, against NumPy ---===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""fused-ropes.py POSENC-COMPILE FOLDER: norms, biases and products before a rope,
operations after one, and programs in which fusion would be wrong."""

import sys

import numpy as np
import programs

suite = programs.Suite(*sys.argv[1:])
random = np.random.default_rng(23)
DIM = 32
SHAPES = ((1, 1), (2, 37), (1, 100), (0, 3), (3, 0))
MAPS = """
#all = affine_map<(b, s, h, d) -> (b, s, h, d)>
#swapped = affine_map<(b, s, h, d) -> (s, b, h, d)>
#row = affine_map<(b, s, h, d) -> (b, s, h)>
#weight = affine_map<(b, s, h, d) -> (d)>
#heads = affine_map<(b, s, h, d) -> (h, d)>
#matrix = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
"""
Q, K, P, W = "tensor<?x?x4x32xf32>", "tensor<?x?x2x32xf32>", "tensor<?x?xi64>", "tensor<32xf32>"


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def rotate(x, positions):
    angles = positions[..., None, None] * 1e4 ** -(np.arange(DIM // 2) / (DIM // 2))
    a, b = x[..., :DIM // 2].astype(np.float64), x[..., DIM // 2:].astype(np.float64)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def generic(result, maps, ins, out, body, kind=4 * ("parallel",)):
    loops = ", ".join(f'"{one}"' for one in kind)
    names = ", ".join(name for name, _ in ins)
    types = ", ".join(type for _, type in ins)
    arguments = ", ".join(f"%{letter}: f32" for letter in "abcdef"[:len(ins)]) + ", %o: f32"
    return f"""
  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
      ins({names} : {types}) outs({out[0]} : {out[1]}) {{
  ^bb0({arguments}):
    {body}
  }} -> {out[1]}"""


def rope(result, source, type=Q, empty="%e"):
    return f"""
  {result} = posenc.rope half #posenc.frequencies<dim = 32> ins({source} : {type})
      positions(%p : {P}) dims = [0, 1] outs({empty} : {type})"""


def begin(arguments, results, first="%x"):
    return MAPS + f"func.func @f({arguments}) -> {results} {{" + f"""
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 32.0 : f32
  %half = arith.constant 0.5 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim {first}, %c0 : {Q}
  %n = tensor.dim {first}, %c1 : {Q}
  %e = tensor.empty(%m, %n) : {Q}"""


ADD = "%s = arith.addf %a, %b : f32\n    linalg.yield %s : f32"
SCALE = "%s = arith.mulf %a, %half : f32\n    linalg.yield %s : f32"


def end(*values):
    return "\n  return " + ", ".join(name for name, _ in values) + " : " + ", ".join(
        type for _, type in values) + "\n}"


def norm(result, source, weight, type, heads):
    rows = f"tensor<?x?x{heads}xf32>"
    text = f"""
  {result}_e = tensor.empty(%m, %n) : {rows}
  {result}_f = linalg.fill ins(%zero : f32) outs({result}_e : {rows}) -> {rows}
  {result}_o = tensor.empty(%m, %n) : {type}"""
    text += generic(f"{result}_q", "#all, #row", [(source, type)], (f"{result}_f", rows),
                    "%s = arith.mulf %a, %a : f32\n    %t = arith.addf %o, %s : f32\n"
                    "    linalg.yield %t : f32", 3 * ("parallel",) + ("reduction",))
    return text + generic(
        result, "#all, #row, #weight, #all", [(source, type), (f"{result}_q", rows), (weight, W)],
        (f"{result}_o", type), "%q = arith.divf %b, %size : f32\n    %r = math.rsqrt %q : f32\n"
        "    %s = arith.mulf %a, %r : f32\n    %t = arith.mulf %s, %c : f32\n"
        "    linalg.yield %t : f32")


def normed(x, weight):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True)) * weight


def norms():
    for m, n in SHAPES:
        x, k, g, h = floats(m, n, 4, DIM), floats(m, n, 2, DIM), floats(DIM), floats(DIM)
        positions = random.integers(-50, 4096, (m, n))
        text = begin(f"%x: {Q}, %g: {W}, %p: {P}", Q) + norm("%y", "%x", "%g", Q, 4)
        suite.check(f"norm and rope {m, n}", text + rope("%r", "%y") + end(("%r", Q)),
                    [x, g, positions], [rotate(normed(x, g), positions)], 2e-6)
        text = begin(f"%x: {Q}, %k: {K}, %g: {W}, %h: {W}, %p: {P}", f"({Q}, {K})")
        text += norm("%y", "%x", "%g", Q, 4) + norm("%z", "%k", "%h", K, 2) + f"""
  %ek = tensor.empty(%m, %n) : {K}
  %r, %t = posenc.rope half #posenc.frequencies<dim = 32> ins(%y, %z : {Q}, {K})
      positions(%p : {P}) dims = [0, 1] outs(%e, %ek : {Q}, {K})"""
        suite.check(f"norms and rope of q and k {m, n}", text + end(("%r", Q), ("%t", K)),
                    [x, k, g, h, positions],
                    [rotate(normed(x, g), positions), rotate(normed(k, h), positions)], 2e-6)


def elementwise():
    for m, n in SHAPES:
        x, y, bias = floats(m, n, 4, DIM), floats(m, n, 4, DIM), floats(4, DIM)
        positions = random.integers(-50, 50, (m, n))
        wide = x.astype(np.float64)
        text = begin(f"%x: {Q}, %b0: tensor<4x32xf32>, %p: {P}", Q)
        text += generic("%y", "#all, #heads, #all", [("%x", Q), ("%b0", "tensor<4x32xf32>")],
                        ("%e", Q), ADD)
        suite.check(f"bias and rope {m, n}", text + rope("%r", "%y") + end(("%r", Q)),
                    [x, bias, positions], [rotate(wide + bias, positions)], 2e-6)
        text = begin(f"%x: {Q}, %p: {P}", Q) + rope("%y", "%x")
        text += generic("%r", "#all, #all", [("%y", Q)], ("%e", Q), SCALE)
        suite.check(f"rope and scale {m, n}", text + end(("%r", Q)), [x, positions],
                    [rotate(x, positions) / 2], 2e-6)
        text = begin(f"%x: {Q}, %y: {Q}, %p: {P}", Q) + rope("%t", "%x")
        text += generic("%r", "#all, #all, #all", [("%t", Q), ("%y", Q)], ("%e", Q), ADD)
        suite.check(f"rope and sum {m, n}", text + end(("%r", Q)), [x, y, positions],
                    [rotate(x, positions) + y], 2e-6)


def hazards():
    """Inputs that are overwritten while others of their rows are still needed."""
    n = 40
    x, y = floats(n, n, 4, DIM), floats(n, n, 4, DIM)
    positions = random.integers(-50, 50, (n, n))
    wide = x.astype(np.float64)
    text = begin(f"%x: {Q}, %p: {P}", Q)
    text += generic("%y", "#all, #swapped, #all", [("%x", Q), ("%x", Q)], ("%e", Q), ADD)
    suite.check("sum with other positions", text + rope("%r", "%y") + end(("%r", Q)),
                [x, positions], [rotate(wide + wide.transpose(1, 0, 2, 3), positions)], 2e-6)
    # The second result depends on the first input before it is overwritten.
    text = begin(f"%x: {Q}, %y: {Q}, %p: {P}", f"({Q}, {Q})")
    text += generic("%t", "#all, #all", [("%x", Q)], ("%e", Q), SCALE)
    text += rope("%r", "%x") + generic("%u", "#all, #all, #all", [("%t", Q), ("%y", Q)],
                                       ("%e", Q), ADD)
    text += rope("%v", "%u")
    suite.check("read before overwritten", text + end(("%r", Q), ("%v", Q)), [x, y, positions],
                [rotate(x, positions), rotate(wide / 2 + y, positions)], 2e-6)
    text = begin(f"%x: {Q}, %p: {P}", f"({Q}, {Q})") + rope("%r", "%x")
    text += generic("%u", "#all, #all", [("%r", Q)], ("%e", Q), SCALE) + rope("%v", "%u")
    suite.check("two ropes", text + end(("%r", Q), ("%v", Q)), [x, positions],
                [rotate(x, positions), rotate(rotate(x, positions) / 2, positions)], 3e-6)


def products():
    for tokens in (1, 50, 300):
        x, w, bias = floats(tokens, 70), floats(70, 128), floats(128)
        positions = random.integers(0, 4096, (1, tokens))
        t = "tensor<?x128xf32>"
        text = MAPS + f"""func.func @f(%x: tensor<?x70xf32>, %w: tensor<70x128xf32>,
    %b0: tensor<128xf32>, %p: {P}) -> {Q} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x70xf32>
  %one = tensor.dim %p, %c0 : {P}
  %m0 = tensor.empty(%n) : {t}
  %f0 = linalg.fill ins(%zero : f32) outs(%m0 : {t}) -> {t}
  %y = linalg.matmul ins(%x, %w : tensor<?x70xf32>, tensor<70x128xf32>) outs(%f0 : {t}) -> {t}
  %e = tensor.empty(%one, %n) : {Q}"""
        text += generic("%z", "#matrix, #column, #matrix", [("%y", t), ("%b0", "tensor<128xf32>")],
                        ("%m0", t), ADD, 2 * ("parallel",))
        text += f"""
  %q = tensor.expand_shape %z [[0, 1], [2, 3]] output_shape [1, %n, 4, 32]
      : {t} into tensor<1x?x4x32xf32>
  %q4 = tensor.cast %q : tensor<1x?x4x32xf32> to {Q}"""
        expected = (x.astype(np.float64) @ w + bias).reshape(1, tokens, 4, DIM)
        suite.check(f"product, bias and rope {tokens}", text + rope("%r", "%q4") + end(("%r", Q)),
                    [x, w, bias, positions], [rotate(expected, positions)], 3e-6)


norms()
elementwise()
hazards()
products()
suite.finish()
