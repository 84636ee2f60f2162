# ===- linalg.py - linalg programs against NumPy ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""linalg.py POSENC-COMPILE FOLDER: compares programs with NumPy in f64, as programs.py
describes."""

import sys

import numpy as np

import programs

random = np.random.default_rng(7)
suite = programs.Suite(*sys.argv[1:])


def tensor(rank, kind):
    return f"tensor<{'?x' * rank}{kind}>"


def floats(shape, kind="f32"):
    return random.standard_normal(shape).astype(programs.TYPES[kind])


def check(name, text, arrays, expected, limit):
    """`limit` bounds the error relative to the largest expected number."""
    suite.check(name, text, arrays, [expected], limit)


def product(maps, kinds):
    a, b, c = kinds
    ranks = [m.count(",") + 1 for m in maps]
    types = [tensor(r, k) for r, k in zip(ranks, (a, b, c))]
    loops = "b, m, n, k" if "b" in maps[0] else "m, n, k"
    iterators = ['"parallel"'] * (loops.count(",")) + ['"reduction"']
    extend = [f"%{x}x = arith.extf %{x} : {k} to {c}" if k != c else ""
              for x, k in (("x", a), ("y", b))]
    x, y = ["%xx" if a != c else "%x", "%yx" if b != c else "%y"]
    texts = ", ".join(f"affine_map<({loops}) -> ({m})>" for m in maps)
    return f"""
func.func @f(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> {types[2]} {{
  %r = linalg.generic {{indexing_maps = [{texts}],
      iterator_types = [{', '.join(iterators)}]}}
      ins(%a, %b : {types[0]}, {types[1]}) outs(%c : {types[2]}) {{
  ^bb0(%x: {a}, %y: {b}, %z: {c}):
    {extend[0]}
    {extend[1]}
    %p = arith.mulf {x}, {y} : {c}
    %s = arith.addf %z, %p : {c}
    linalg.yield %s : {c}
  }} -> {types[2]}
  return %r : {types[2]}
}}"""


LIMITS = {"f32": 3e-6, "f64": 1e-14}


def products():
    sizes = [(9, 40, 300), (64, 64, 64), (1, 33, 5), (257, 1, 2), (5, 0, 3), (5, 3, 0),
             (0, 3, 5)]
    for m, n, k in sizes:
        for kinds in (("f32",) * 3, ("f64",) * 3, ("f16", "f16", "f32")):
            a, b = floats((m, k), kinds[0]), floats((k, n), kinds[1])
            c = floats((m, n), kinds[2])
            expected = c.astype(np.float64) + a.astype(np.float64) @ b
            check(f"{m}x{n}x{k} {kinds}", product(("m, k", "k, n", "m, n"), kinds),
                  [a, b, c], expected, LIMITS[kinds[2]])
    kinds = ("f32",) * 3
    m, n, k = 70, 37, 261
    a, b, c = floats((m, k)), floats((k, n)), floats((m, n))
    expected = c.astype(np.float64) + a.astype(np.float64) @ b
    for left in ("m, k", "k, m"):
        for right in ("k, n", "n, k"):
            for out in ("m, n", "n, m"):
                arrays = [x if text in ("m, k", "k, n", "m, n") else x.T.copy()
                          for x, text in ((a, left), (b, right), (c, out))]
                check(f"{left}; {right}; {out}", product((left, right, out), kinds), arrays,
                      expected if out == "m, n" else expected.T, LIMITS["f32"])
    # Sums of 256 products each are added: one sum would lose those that are small.
    a, b = np.full((13, 768), 2.0**-25, np.float32), np.ones((768, 37), np.float32)
    a[:, 0] = 1
    check("partial sums", product(("m, k", "k, n", "m, n"), kinds),
          [a, b, np.zeros((13, 37), np.float32)], np.full((13, 37), 1 + 2.0**-16), 0)
    a, b, c = floats((3, 5, 37)), floats((3, 37, 50)), floats((3, 5, 50))
    check("batch", product(("b, m, k", "b, k, n", "b, m, n"), kinds), [a, b, c],
          c.astype(np.float64) + a.astype(np.float64) @ b, LIMITS["f32"])


def rows():
    for shape in ((17, 45), (3, 16), (4, 100), (1, 7), (0, 9), (5, 0), (300, 33)):
        x, w = floats(shape), floats(shape[1:])
        t, v = tensor(2, "f32"), tensor(1, "f32")
        check(f"silu {shape}", f"""
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
func.func @f(%a: {t}, %w: {v}) -> {t} {{
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {{indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %w : {t}, {v}) outs(%a : {t}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.negf %s : f32
    %e = math.exp %m : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %s, %d : f32
    linalg.yield %q : f32
  }} -> {t}
  return %r : {t}
}}""", [x, w], (s := (x + w).astype(np.float64)) / (1 + np.exp(-s)), 1e-6)
        check(f"transpose {shape}", f"""
func.func @f(%a: {t}, %o: {t}) -> {t} {{
  %r = linalg.transpose ins(%a : {t}) outs(%o : {t}) permutation = [1, 0]
  return %r : {t}
}}""", [x, floats(shape[::-1])], x.T, 0)
        for name, op, start, reduce in (
                ("sum", "arith.addf", 0.5, lambda z: 0.5 + z.sum(1)),
                ("max", "arith.maximumf", -9, lambda z: z.max(1, initial=-9))):
            check(f"{name} {shape}", f"""
func.func @f(%a: {t}, %o: {v}) -> {v} {{
  %r = linalg.reduce {{ {op} }} ins(%a : {t}) outs(%o : {v}) dimensions = [1]
  return %r : {v}
}}""", [x, np.full(shape[0], start, np.float32)], reduce(x.astype(np.float64)), 3e-6)
        planes = floats((2, *shape))
        for dims, rank in (((1, 2), 1), ((0, 1, 2), 0), ((0, 2), 1)) if shape[0] > 2 else ():
            out = np.full([size for dim, size in enumerate(planes.shape) if dim not in dims], 0.5,
                          np.float32)
            check(f"sum of {dims} of {shape}", f"""
func.func @f(%a: {tensor(3, "f32")}, %o: {tensor(rank, "f32")}) -> {tensor(rank, "f32")} {{
  %r = linalg.reduce {{ arith.addf }} ins(%a : {tensor(3, "f32")}) outs(%o : {tensor(rank, "f32")})
      dimensions = {list(dims)}
  return %r : {tensor(rank, "f32")}
}}""", [planes, out], 0.5 + planes.astype(np.float64).sum(dims), 1e-5)
        i = random.integers(-1000, 1000, shape).astype(np.int32)
        t = tensor(2, "i32")
        columns = np.arange(shape[1])
        check(f"integers {shape}", f"""
#ij = affine_map<(i, j) -> (i, j)>
func.func @f(%a: {t}) -> {t} {{
  %r = linalg.generic {{indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}}
      ins(%a : {t}) outs(%a : {t}) {{
  ^bb0(%x: i32, %o: i32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %c = arith.cmpi slt, %x, %k : i32
    %p = arith.muli %x, %k : i32
    %s = arith.select %c, %k, %p : i32
    linalg.yield %s : i32
  }} -> {t}
  return %r : {t}
}}""", [i], np.where(i < columns, columns, i * columns), 0)


products()
rows()
suite.finish()
