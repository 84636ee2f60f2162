# ===- fused.py - programs that are fused, against NumPy --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""fused.py POSENC-COMPILE FOLDER: norms, softmax, sums with tables, products with
what follows them, and programs in which fusion would be wrong."""

import sys

import numpy as np
import programs

suite = programs.Suite(*sys.argv[1:])
random = np.random.default_rng(11)
MAPS = """
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
#bsd = affine_map<(b, s, d) -> (b, s, d)>
#sd = affine_map<(b, s, d) -> (s, d)>
"""
M, V = "tensor<?x?xf32>", "tensor<?xf32>"


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def generic(result, maps, ins, out, body, kind="parallel, parallel", element="f32"):
    """One linalg.generic; the body names its operands %a, %b, …, %o."""
    loops = ", ".join(f'"{one}"' for one in kind.split(", "))
    names = ", ".join(name for name, _ in ins)
    types = ", ".join(type for _, type in ins)
    arguments = ", ".join(
        [f"%{letter}: {type[type.rindex('x') + 1:-1]}"
         for letter, (_, type) in zip("abcdef", ins)] + [f"%o: {element}"])
    return f"""
  {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
      ins({names} : {types}) outs({out[0]} : {out[1]}) {{
  ^bb0({arguments}):
    {body}
  }} -> {out[1]}"""


def add(x="%a", y="%b"):
    return f"%s = arith.addf {x}, {y} : f32\n    linalg.yield %s : f32"


SIZES = """
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index"""
EMPTY = SIZES + """
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %rows = tensor.empty(%m) : tensor<?xf32>
  %full = tensor.empty(%m, %n) : tensor<?x?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<?xf32>) -> tensor<?xf32>"""
SQUARES = generic("%q", "#ij, #i", [("%x", M)], ("%zeros", V),
                  "%p = arith.mulf %a, %a : f32\n    %s = arith.addf %o, %p : f32\n"
                  "    linalg.yield %s : f32", "parallel, reduction")
NORM = """%k = math.rsqrt %b : f32
    %y = arith.mulf %a, %k : f32
    linalg.yield %y : f32"""
SHAPES = ((17, 45), (3, 16), (4, 100), (1, 7), (0, 9), (5, 0), (300, 333))


def norms():
    for shape in SHAPES:
        x, w = floats(*shape), floats(*shape[1:])
        with np.errstate(all="ignore"):
            r = x.astype(np.float64)
            r = r / np.sqrt((r * r).sum(1, keepdims=True))
        text = MAPS + f"func.func @f(%x: {M}) -> {M} {{" + EMPTY + SQUARES
        text += generic("%r", "#ij, #i, #ij", [("%x", M), ("%q", V)], ("%full", M), NORM)
        suite.check(f"norm {shape}", text + f"\n  return %r : {M}\n}}", [x], [r], 1e-6, [0])
        # The sum is a result, too, and so is what is normed.
        y = floats(*shape)
        h = x.astype(np.float64) + y
        with np.errstate(all="ignore"):
            r = h / np.sqrt((h * h).sum(1, keepdims=True))
        text = MAPS + f"func.func @f(%u: {M}, %x: {M}) -> ({M}, {M}) {{" + EMPTY
        text += generic("%h", "#ij, #ij, #ij", [("%u", M), ("%x", M)], ("%full", M), add())
        text += SQUARES.replace("ins(%x", "ins(%h")
        text += generic("%r", "#ij, #i, #ij", [("%h", M), ("%q", V)], ("%full", M), NORM)
        suite.check(f"residual and norm {shape}", text + f"\n  return %h, %r : {M}, {M}\n}}",
                    [x, y], [h, r], 1e-6)
        for dim in (0, 1):
            if shape[dim] == 0:
                continue
            e = x.astype(np.float64)
            e = np.exp(e - e.max(dim, keepdims=True, initial=-np.inf))
            suite.check(f"softmax {dim} {shape}", f"func.func @f(%x: {M}, %o: {M}) -> {M} {{" + f"""
  %r = linalg.softmax dimension({dim}) ins(%x : {M}) outs(%o : {M}) -> {M}
  return %r : {M}
}}""", [x, x], [e / e.sum(dim, keepdims=True)], 1e-6)
        # What is subtracted is used twice: it is written over.
        if shape[1]:
            c = x.astype(np.float64)
            c = c - c.sum(1, keepdims=True) / 8
            text = MAPS + f"func.func @f(%x: {M}) -> {M} {{" + EMPTY
            text += generic("%t", "#ij, #i", [("%x", M)], ("%zeros", V), add("%o", "%a"),
                            "parallel, reduction")
            text += generic("%cc", "#ij, #i, #ij", [("%x", M), ("%t", V)], ("%full", M),
                            "%e = arith.constant 8.0 : f32\n    %d = arith.divf %b, %e : f32\n"
                            "    %s = arith.subf %a, %d : f32\n    linalg.yield %s : f32")
            text += SQUARES.replace("ins(%x", "ins(%cc")
            text += generic("%r", "#ij, #i, #ij", [("%cc", M), ("%q", V)], ("%full", M), NORM)
            with np.errstate(all="ignore"):
                r = c / np.sqrt((c * c).sum(1, keepdims=True))
            suite.check(f"centered norm {shape}", text + f"\n  return %r : {M}\n}}", [x], [r],
                        2e-6)
        suite.check(f"column sums {shape}", f"func.func @f(%x: {M}, %o: {V}) -> {V} {{" + f"""
  %r = linalg.reduce {{ arith.addf }} ins(%x : {M}) outs(%o : {V}) dimensions = [0]
  return %r : {V}
}}""", [x, w], [w + x.astype(np.float64).sum(0)], 3e-6)


def tables():
    t = "tensor<?x?x32xf32>"
    for shape in ((3, 9, 32), (8, 70, 32), (1, 1, 32), (2, 0, 32)):
        x, positions = floats(*shape), np.arange(shape[1]) * 3 - 5
        angles = positions[:, None] * 1e4 ** -(np.arange(16) / 16)
        table = np.concatenate([np.sin(angles), np.cos(angles)], 1)
        text = MAPS + f"func.func @f(%x: {t}, %p: tensor<?xi64>) -> {t} {{" + SIZES + f"""
  %n = tensor.dim %x, %c1 : {t}
  %e = tensor.empty(%n) : tensor<?x32xf32>
  %t = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 32> positions(%p : tensor<?xi64>)
      outs(%e : tensor<?x32xf32>)"""
        text += generic("%r", "#bsd, #sd, #bsd", [("%x", t), ("%t", "tensor<?x32xf32>")],
                        ("%x", t), add(), "parallel, parallel, parallel")
        suite.check(f"x + sinusoidal {shape}", text + f"\n  return %r : {t}\n}}", [x, positions],
                    [x + table], 1e-6, [0])


def products():
    for m, n, k in ((9, 40, 300), (64, 64, 64), (1, 33, 5), (300, 70, 40), (0, 3, 5)):
        x, w, b, h = floats(m, k), floats(k, n), floats(n), floats(m, n)
        y = x.astype(np.float64) @ w
        start = MAPS + f"func.func @f(%x: {M}, %w: {M}, %bias: {V}, %h: {M}) -> {M} {{" + SIZES + f"""
  %m = tensor.dim %x, %c0 : {M}
  %n = tensor.dim %w, %c1 : {M}
  %e = tensor.empty(%m, %n) : {M}
  %f = linalg.fill ins(%zero : f32) outs(%e : {M}) -> {M}
  %p = linalg.matmul ins(%x, %w : {M}, {M}) outs(%f : {M}) -> {M}"""
        bias = generic("%s", "#ij, #j, #ij", [("%p", M), ("%bias", V)], ("%e", M), add())
        silu = generic("%r", "#ij, #ij", [("%s", M)], ("%e", M), """%g = arith.negf %a : f32
    %e0 = math.exp %g : f32
    %d = arith.addf %e0, %one : f32
    %q = arith.divf %a, %d : f32
    linalg.yield %q : f32""")
        residual = generic("%r", "#ij, #ij, #ij", [("%h", M), ("%p", M)], ("%e", M), add())
        end = f"\n  return %r : {M}\n}}"
        s = y + b
        suite.check(f"bias and silu {m, n, k}", start + bias + silu + end, [x, w, b, h],
                    [s / (1 + np.exp(-s))], 3e-6)
        suite.check(f"residual {m, n, k}", start + residual + end, [x, w, b, h], [h + y], 3e-6,
                    [3])
        suite.check(f"bf16 result {m, n, k}", f"""
func.func @f(%x: tensor<?x?xf16>, %w: tensor<?x?xf16>) -> tensor<?x?xf16> {{
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf16>
  %n = tensor.dim %w, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x?xf16>) -> tensor<?x?xf16>
  %p = linalg.matmul ins(%x, %w : tensor<?x?xf16>, tensor<?x?xf16>) outs(%f : tensor<?x?xf16>) -> tensor<?x?xf16>
  return %p : tensor<?x?xf16>
}}""", [x.astype(np.float16), w.astype(np.float16)],
                    [x.astype(np.float16).astype(np.float64) @ w.astype(np.float16)], 6e-4)
        if k == m:
            # What is multiplied is overwritten: not while others still read it.
            suite.check(f"product with itself {m}", start + residual.replace("%h", "%x") + end,
                        [x, w, b, h], [x + y], 3e-6, [0])


def hazards():
    n = 300
    x, y = floats(n, n), floats(n, n)
    wide = x.astype(np.float64)
    # Columns of what is overwritten by rows.
    text = MAPS + f"func.func @f(%x: {M}) -> {M} {{" + EMPTY
    text += generic("%t", "#ji, #i", [("%x", M)], ("%zeros", V), add("%o", "%a"),
                    "parallel, reduction")
    text += generic("%r", "#ij, #i, #ij", [("%x", M), ("%t", V)], ("%full", M), add())
    suite.check("columns over rows", text + f"\n  return %r : {M}\n}}", [x],
                [wide + wide.sum(0)[:, None]], 3e-6, [0])
    text = MAPS + f"func.func @f(%x: {M}) -> {M} {{" + EMPTY
    text += generic("%t", "#ji, #ij", [("%x", M)], ("%full", M),
                    "%s = arith.mulf %a, %a : f32\n    linalg.yield %s : f32")
    text += generic("%r", "#ij, #ij, #ij", [("%x", M), ("%t", M)], ("%full", M), add())
    suite.check("transpose over itself", text + f"\n  return %r : {M}\n}}", [x],
                [wide + (wide * wide).T], 3e-6, [0])
    # The second result is of the first input before it is overwritten.
    text = MAPS + f"func.func @f(%x: {M}, %y: {M}) -> ({M}, {M}) {{" + EMPTY
    text += generic("%t", "#ij, #ij", [("%x", M)], ("%full", M),
                    "%s = arith.mulf %a, %a : f32\n    linalg.yield %s : f32")
    text += generic("%r", "#ij, #ij", [("%x", M)], ("%full", M), add("%a", "%a"))
    text += generic("%u", "#ij, #ij, #ij", [("%t", M), ("%y", M)], ("%full", M), add())
    suite.check("read before overwritten", text + f"\n  return %r, %u : {M}, {M}\n}}", [x, y],
                [2 * wide, wide * wide + y], 3e-6, [0, 1])
    text = MAPS + f"func.func @f(%x: {M}, %y: {M}) -> ({M}, {M}) {{" + EMPTY
    text += generic("%r", "#ij, #ij, #ij", [("%x", M), ("%y", M)], ("%full", M), add())
    text += generic("%u", "#ji, #ij", [("%r", M)], ("%full", M), add("%a", "%a"))
    suite.check("transpose of a result", text + f"\n  return %r, %u : {M}, {M}\n}}", [x, y],
                [wide + y, 2 * (wide + y).T], 3e-6, [0, None])


norms()
tables()
products()
hazards()
suite.finish()
