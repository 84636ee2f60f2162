# ===- fused.py - fused programs against NumPy ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""fused.py POSENC-COMPILE FOLDER: norms, softmax, sums with tables, products and
their epilogues, and programs in which fusion would be wrong."""

import ctypes
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
    """Returns a linalg.generic; the body calls its operands %a, %b, …, %o."""
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
        # The sum, which is the input of the norm, is a result as well.
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
        # The centered input has two uses and is overwritten in place.
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
        suite.check(f"f16 result {m, n, k}", """
func.func @f(%x: tensor<?x?xf16>, %w: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf16>
  %n = tensor.dim %w, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x?xf16>) -> tensor<?x?xf16>
  %p = linalg.matmul ins(%x, %w : tensor<?x?xf16>, tensor<?x?xf16>) outs(%f : tensor<?x?xf16>) -> tensor<?x?xf16>
  return %p : tensor<?x?xf16>
}""", [x.astype(np.float16), w.astype(np.float16)],
                    [x.astype(np.float16).astype(np.float64) @ w.astype(np.float16)], 6e-4)
        if k == m:
            # The left factor is overwritten, but not before it has been read.
            suite.check(f"product with itself {m}", start + residual.replace("%h", "%x") + end,
                        [x, w, b, h], [x + y], 3e-6, [0])


def short_sums():
    """Sums of f16 are rounded once."""
    half, halves = "tensor<?x?xf16>", "tensor<?xf16>"
    for m, n in ((5, 1001), (40, 16), (3, 7), (2, 0)):
        x, w, init = (floats(*shape).astype(np.float16) for shape in ((m, n), (n,), (m,)))
        wide = x.astype(np.float64)
        suite.check(f"f16 matvec {m, n}", f"""
func.func @f(%x: {half}, %w: {halves}, %o: {halves}) -> {halves} {{
  %r = linalg.matvec ins(%x, %w : {half}, {halves}) outs(%o : {halves}) -> {halves}
  return %r : {halves}
}}""", [x, w, init], [init + wide @ w.astype(np.float64)], 6e-4)
        suite.check(f"f16 column sums {m, n}", f"""
func.func @f(%x: {half}, %o: {halves}) -> {halves} {{
  %r = linalg.reduce {{ arith.addf }} ins(%x : {half}) outs(%o : {halves}) dimensions = [0]
  return %r : {halves}
}}""", [x, w], [w + wide.sum(0)], 6e-4)


def hazards():
    n = 300
    x, y = floats(n, n), floats(n, n)
    wide = x.astype(np.float64)
    # The columns of an input that is overwritten row by row.
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
    # A square and its transpose: the rows of one are the columns of the other.
    text = MAPS + f"func.func @f(%x: {M}) -> {M} {{" + EMPTY
    text += generic("%t", "#ij, #ij", [("%x", M)], ("%full", M),
                    "%s = arith.mulf %a, %a : f32\n    linalg.yield %s : f32")
    text += generic("%r", "#ij, #ij, #ji, #ij", [("%x", M), ("%t", M), ("%t", M)], ("%full", M),
                    "%d = arith.addf %a, %b : f32\n    %s = arith.addf %d, %c : f32\n"
                    "    linalg.yield %s : f32")
    suite.check("rows and columns of a square", text + f"\n  return %r : {M}\n}}", [x],
                [wide + wide * wide + (wide * wide).T], 3e-6, [0])
    # The second result depends on the first input before it is overwritten.
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


def layers():
    """A norm, projections, rope, attention and the output projection: dependent
    loops with intermediate buffers."""
    hidden, heads, kv_heads, dim = 96, 4, 2, 32
    kv = kv_heads * dim
    for tokens in (1, 37, 300):
        x, g = floats(tokens, hidden), floats(hidden)
        wq, wk, wv, wo = (floats(*shape) / 8 for shape in (
            (hidden, heads * dim), (hidden, kv), (hidden, kv), (heads * dim, hidden)))
        positions = np.arange(tokens)[None]
        wide = x.astype(np.float64)
        h = wide / np.sqrt((wide * wide).sum(1, keepdims=True)) * g
        angles = np.arange(tokens)[:, None] * 1e4 ** -(np.arange(dim // 2) / (dim // 2))
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

        def rotate(t):
            a, b = t[..., :dim // 2], t[..., dim // 2:]
            return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

        q = rotate((h @ wq).reshape(tokens, heads, dim))
        k = rotate((h @ wk).reshape(tokens, kv_heads, dim))
        v = (h @ wv).reshape(tokens, kv_heads, dim)
        attended = np.zeros_like(q)
        for head in range(heads):
            scores = q[:, head] @ k[:, head // 2].T / np.sqrt(dim)
            scores[np.triu_indices(tokens, 1)] = -np.inf
            weights = np.exp(scores - scores.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
            attended[:, head] = weights @ v[:, head // 2]
        expected = x + attended.reshape(tokens, -1) @ wo

        def product(result, left, right, size):
            t, w = f"tensor<?x{size[0]}xf32>", f"tensor<{size[0]}x{size[1]}xf32>"
            out = f"tensor<?x{size[1]}xf32>"
            return f"""
  %{result}e = tensor.empty(%t) : {out}
  %{result}f = linalg.fill ins(%zero : f32) outs(%{result}e : {out}) -> {out}
  %{result} = linalg.matmul ins({left}, {right} : {t}, {w}) outs(%{result}f : {out}) -> {out}"""

        def split(result, source, count):
            return f"""
  %{result} = tensor.expand_shape {source} [[0, 1], [2, 3]] output_shape [1, %t, {count}, {dim}]
      : tensor<?x{count * dim}xf32> into tensor<1x?x{count}x{dim}xf32>"""

        t = f"tensor<?x{hidden}xf32>"
        tq, tk = (f"tensor<1x?x{count}x{dim}xf32>" for count in (heads, kv_heads))
        text = MAPS + f"""func.func @f(%x: {t}, %g: tensor<{hidden}xf32>,
    %wq: tensor<{hidden}x{heads * dim}xf32>, %wk: tensor<{hidden}x{kv}xf32>,
    %wv: tensor<{hidden}x{kv}xf32>, %wo: tensor<{heads * dim}x{hidden}xf32>,
    %at: tensor<1x?xi64>) -> {t} {{{SIZES}
  %t = tensor.dim %x, %c0 : {t}
  %rows = tensor.empty(%t) : {V}
  %full = tensor.empty(%t) : {t}
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : {V}) -> {V}"""
        text += SQUARES.replace(M, t)
        text += generic("%h", "#ij, #i, #j, #ij", [("%x", t), ("%q", V), ("%g", f"tensor<{hidden}xf32>")],
                        ("%full", t), "%k = math.rsqrt %b : f32\n    %y = arith.mulf %a, %k : f32\n"
                        "    %z = arith.mulf %y, %c : f32\n    linalg.yield %z : f32")
        text += product("q0", "%h", "%wq", (hidden, heads * dim))
        text += product("k0", "%h", "%wk", (hidden, kv)) + product("v0", "%h", "%wv", (hidden, kv))
        text += split("q4", "%q0", heads) + split("k4", "%k0", kv_heads)
        text += split("v4", "%v0", kv_heads) + f"""
  %eq = tensor.empty(%t) : {tq}
  %ek = tensor.empty(%t) : {tk}
  %qr, %kr = posenc.rope half #posenc.frequencies<dim = {dim}> ins(%q4, %k4 : {tq}, {tk})
      positions(%at : tensor<1x?xi64>) dims = [0, 1] outs(%eq, %ek : {tq}, {tk})
  %a4 = posenc.attention causal ins(%qr, %kr, %v4 : {tq}, {tk}, {tk}) outs(%eq : {tq})
  %a2 = tensor.collapse_shape %a4 [[0, 1], [2, 3]] : {tq} into tensor<?x{heads * dim}xf32>"""
        text += product("out", "%a2", "%wo", (heads * dim, hidden))
        text += generic("%r", "#ij, #ij, #ij", [("%x", t), ("%out", t)], ("%full", t), add())
        suite.check(f"layer {tokens}", text + f"\n  return %r : {t}\n}}",
                    [x, g, wq, wk, wv, wo, positions], [expected], 3e-6, [0])


def batches():
    """Products with several row, column or reduction dimensions."""
    for b, s, h, k, d in ((2, 37, 3, 16, 40), (5, 1, 2, 9, 8), (1, 300, 4, 32, 64)):
        x, w, init = floats(b, s, d), floats(d, h, k), floats(b, s, h, k)
        text = f"""
#x = affine_map<(b, s, h, k, d) -> (b, s, d)>
#w = affine_map<(b, s, h, k, d) -> (d, h, k)>
#o = affine_map<(b, s, h, k, d) -> (b, s, h, k)>
func.func @f(%x: tensor<?x?x{d}xf32>, %w: tensor<{d}x{h}x{k}xf32>,
             %o: tensor<?x?x{h}x{k}xf32>) -> tensor<?x?x{h}x{k}xf32> {{
  %r = linalg.generic {{indexing_maps = [#x, #w, #o],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<?x?x{d}xf32>, tensor<{d}x{h}x{k}xf32>)
      outs(%o : tensor<?x?x{h}x{k}xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  }} -> tensor<?x?x{h}x{k}xf32>
  return %r : tensor<?x?x{h}x{k}xf32>
}}"""
        suite.check(f"rows, heads and channels {b, s, h, k, d}", text, [x, w, init],
                    [init + np.einsum("bsd,dhk->bshk", x.astype(np.float64), w)], 3e-6)
        y, v, init = floats(b, s, h, k), floats(h, k, d), floats(b, s, d)
        text = f"""
#y = affine_map<(b, s, d, h, k) -> (b, s, h, k)>
#v = affine_map<(b, s, d, h, k) -> (h, k, d)>
#o = affine_map<(b, s, d, h, k) -> (b, s, d)>
func.func @f(%y: tensor<?x?x{h}x{k}xf32>, %v: tensor<{h}x{k}x{d}xf32>,
             %o: tensor<?x?x{d}xf32>) -> tensor<?x?x{d}xf32> {{
  %r = linalg.generic {{indexing_maps = [#y, #v, #o],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%y, %v : tensor<?x?x{h}x{k}xf32>, tensor<{h}x{k}x{d}xf32>)
      outs(%o : tensor<?x?x{d}xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  }} -> tensor<?x?x{d}xf32>
  return %r : tensor<?x?x{d}xf32>
}}"""
        suite.check(f"sums over heads and channels {b, s, h, k, d}", text, [y, v, init],
                    [init + np.einsum("bshk,hkd->bsd", y.astype(np.float64), v)], 3e-6)


def workspaces():
    """The workspace size is right, and 0 where it overflows."""
    text = f"""
func.func @f(%x: {M}, %w: {M}, %init: {V}) -> {V} {{{SIZES}
  %m = tensor.dim %x, %c0 : {M}
  %n = tensor.dim %w, %c1 : {M}
  %e = tensor.empty(%m, %n) : {M}
  %f = linalg.fill ins(%zero : f32) outs(%e : {M}) -> {M}
  %p = linalg.matmul ins(%x, %w : {M}, {M}) outs(%f : {M}) -> {M}
  %r = linalg.reduce {{ arith.addf }} ins(%p : {M}) outs(%init : {V}) dimensions = [0]
  return %r : {V}
}}"""
    m, k, n = 400, 7, 300
    x, w, init = floats(m, k), floats(k, n), floats(n)
    suite.check("sums of a product", text, [x, w, init],
                [init + (x.astype(np.float64) @ w).sum(0)], 3e-6)
    library = suite.compile("large", text, "host")
    measure = library.symbol("f_workspace")
    measure.restype = ctypes.c_int64

    def get_bytes(rows, columns):
        sizes = {"x_dim0": rows, "x_dim1": k, "w_dim1": columns}
        return measure(*(ctypes.c_int64(sizes[name]) for name in library.function["sizes"]))

    for rows, columns in ((1 << 40, 1 << 40), (1 << 31, 1 << 31), (1 << 33, 1 << 33)):
        suite.count += 1
        if get_bytes(rows, columns) != 0:
            suite.wrong += 1
            print(f"workspace for {rows}x{columns}: {get_bytes(rows, columns)}")
    suite.count += 1
    if not m * n * 4 <= get_bytes(m, n) < m * n * 4 + (1 << 20):
        suite.wrong += 1
        print(f"workspace of {get_bytes(m, n)} bytes")


norms()
tables()
products()
short_sums()
hazards()
layers()
batches()
workspaces()
suite.finish()
