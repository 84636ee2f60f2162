#!/usr/bin/env python3
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints functions that compute a number from the same number twice, 60 times in a row:
there are 2^60 paths to the first one."""

LEVELS = 60


def double(operation, type, first, name):
    """Returns the lines of the chain, whose last value is `name` and the number of levels."""
    lines = [f"  %{name}0 = {first} : {type}"]
    lines += [f"  %{name}{level + 1} = {operation} %{name}{level}, %{name}{level} : {type}"
              for level in range(LEVELS)]
    return "\n".join(lines)


def rotate(cos, sin):
    return f"""
  %x0 = tensor.extract_slice %x[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %neg = arith.negf %x1 : tensor<4x4xf32>
  %r = tensor.concat dim(1) %neg, %x0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %a = arith.mulf %x, {cos} : tensor<4x8xf32>
  %b = arith.mulf %r, {sin} : tensor<4x8xf32>
  %y = arith.addf %a, %b : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}}"""


print("""#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>""")

# Frequencies: halves of halves of constants, doubled as often.
chain = "\n".join(f"""    %d{level} = arith.mulf %f{level}, %half : f32
    %f{level + 1} = arith.addf %d{level}, %d{level} : f32""" for level in range(LEVELS))
print(f"""
func.func @frequencies(%x: tensor<64x8xf32>) -> tensor<64x8xf32> {{
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<64x4xf32>
  %c, %s = linalg.generic {{indexing_maps = [#lane, #both, #both], iterator_types = ["parallel", "parallel"]}}
      ins(%f : tensor<4xf32>) outs(%e, %e : tensor<64x4xf32>, tensor<64x4xf32>) {{
  ^bb0(%f0: f32, %o0: f32, %o1: f32):
    %half = arith.constant 0.5 : f32
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    %pf = arith.sitofp %p : i64 to f32
{chain}
    %a = arith.mulf %pf, %f{LEVELS} : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  }} -> (tensor<64x4xf32>, tensor<64x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<64x8xf32>) tables(%c, %s : tensor<64x4xf32>) dims = [0] outs(%x : tensor<64x8xf32>)
  return %y : tensor<64x8xf32>
}}""")

# Complex numbers, each the square of the last one.
chain = double("complex.mul", "complex<f32>", "complex.create %ti, %ui", "z")
print(f"""
func.func @complex(%x: tensor<4x8xf32>, %t: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %e = tensor.empty() : tensor<4x8xf32>
  %c, %s = linalg.generic {{indexing_maps = [#both, #both, #both, #both], iterator_types = ["parallel", "parallel"]}}
      ins(%t, %u : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e, %e : tensor<4x8xf32>, tensor<4x8xf32>) {{
  ^bb0(%ti: f32, %ui: f32, %o0: f32, %o1: f32):
{chain}
    %re = complex.re %z{LEVELS} : complex<f32>
    %im = complex.im %z{LEVELS} : complex<f32>
    linalg.yield %re, %im : f32, f32
  }} -> (tensor<4x8xf32>, tensor<4x8xf32>)""" + rotate("%c", "%s"))

# Two tensors that are computed in the same way and concatenated.
first, second = (double("arith.mulf", "tensor<2x8xf32>", f"math.exp %{part}", name)
                 for part, name in (("t0", "m"), ("t1", "n")))
print(f"""
func.func @concatenated(%x: tensor<4x8xf32>, %t: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %t0 = tensor.extract_slice %t[0, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  %t1 = tensor.extract_slice %t[2, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
{first}
{second}
  %c = tensor.concat dim(0) %m{LEVELS}, %n{LEVELS} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>"""
      + rotate("%c", "%u"))

# Weights that are divided by their sum times 2^60.
SCORES, SUMS = "tensor<4x8x8xf32>", "tensor<4x8xf32>"
print(f"""
func.func @sum(%q: tensor<4x8x16xf32>, %k: tensor<4x16x8xf32>, %v: tensor<4x8x16xf32>) -> tensor<4x8x16xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {SCORES}
  %z = linalg.fill ins(%zero : f32) outs(%e : {SCORES}) -> {SCORES}
  %l = linalg.batch_matmul ins(%q, %k : tensor<4x8x16xf32>, tensor<4x16x8xf32>) outs(%z : {SCORES}) -> {SCORES}
  %p = math.exp %l : {SCORES}
  %se = tensor.empty() : {SUMS}
  %sz = linalg.fill ins(%zero : f32) outs(%se : {SUMS}) -> {SUMS}
  %s = linalg.reduce {{ arith.addf }} ins(%p : {SCORES}) outs(%sz : {SUMS}) dimensions = [2]
{double("arith.addf", SUMS, "arith.addf %s, %s", "s")}
  %sb = linalg.broadcast ins(%s{LEVELS} : {SUMS}) outs(%e : {SCORES}) dimensions = [2]
  %w = arith.divf %p, %sb : {SCORES}
  %oe = tensor.empty() : tensor<4x8x16xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %o = linalg.batch_matmul ins(%w, %v : {SCORES}, tensor<4x8x16xf32>) outs(%oz : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  return %o : tensor<4x8x16xf32>
}}""")

# Numbers that depend on a float outside of the loops, which is not known.
chain = double("arith.mulf", "f32", "arith.negf %f", "g")
print(f"""
func.func @unknown(%x: tensor<4x8xf32>, %t: tensor<4x8xf32>, %u: tensor<4x8xf32>, %f: f32) -> tensor<4x8xf32> {{
  %e = tensor.empty() : tensor<4x8xf32>
  %c = linalg.generic {{indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}}
      ins(%t : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {{
  ^bb0(%ti: f32, %o0: f32):
{chain}
    %r = arith.mulf %ti, %g{LEVELS} : f32
    linalg.yield %r : f32
  }} -> tensor<4x8xf32>""" + rotate("%c", "%u"))
