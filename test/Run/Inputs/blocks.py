# ===- blocks.py - attention blocks as MLIR, against NumPy ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""blocks.py POSENC-RUN FOLDER: runs transformer blocks of norm, QKV projection, rope, kv_append, attention,
output projection and residual as one function.
blocks.py --print DTYPE: the block of examples/block.mlir."""

import itertools
import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Block:
    tokens: int
    hidden: int
    heads: int
    key_heads: int
    dim: int
    dtype: str = "f32"
    one_product: bool = False
    past: int = -1  # tokens in the cache before; no cache if negative
    is_static: bool = False
    wrong: str = ""  # a fault that the check must find

    @property
    def width(self):
        return self.heads * self.dim

    @property
    def key_width(self):
        return self.key_heads * self.dim

    @property
    def slots(self):
        return self.tokens + self.past + 3


def get_text(block, name="block"):
    """Returns the block as a function on tensors of `dtype`, with sums in f32."""
    t = str(block.tokens) if block.is_static else "?"
    e, hidden, width, key_width = block.dtype, block.hidden, block.width, block.key_width
    size = "" if block.is_static else "%t"
    length = t if block.is_static else "%t"
    has_cache, is_narrow = block.past >= 0, e != "f32"
    x, sums = f"tensor<{t}x{hidden}x{e}>", f"tensor<{t}xf32>"
    heads = f"tensor<1x{t}x{block.heads}x{block.dim}x{e}>"
    key_heads = f"tensor<1x{t}x{block.key_heads}x{block.dim}x{e}>"
    slots = block.slots if block.is_static else "?"
    cache = f"tensor<1x{block.key_heads}x{slots}x{block.dim}x{e}>"

    def matrix(rows, columns):
        return f"tensor<{rows}x{columns}x{e}>"

    def widen(values):
        if not is_narrow:
            return ""
        return "".join(f"\n      %{v}f = arith.extf %{v} : {e} to f32" for v in values)

    def use(value):
        return f"%{value}f" if is_narrow else f"%{value}"

    def narrow(value):
        return (f"\n      %l = arith.truncf {value} : f32 to {e}"
                f"\n      linalg.yield %l : {e}") if is_narrow else (
                f"\n      linalg.yield {value} : f32")

    def multiply(name, left, right, rows, columns):
        """Returns the product left * right, rounded to the type of the tensors."""
        result, wide = f"tensor<{t}x{columns}x{e}>", f"tensor<{t}x{columns}xf32>"
        text = f"""
  %{name}_e = tensor.empty({size}) : {wide}
  %{name}_f = linalg.fill ins(%zero : f32) outs(%{name}_e : {wide}) -> {wide}
  %{name}{'_s' if is_narrow else ''} = linalg.matmul
    ins({left}, {right} : tensor<{t}x{rows}x{e}>, {matrix(rows, columns)})
    outs(%{name}_f : {wide}) -> {wide}"""
        if is_narrow:
            text += f"""
  %{name}_n = tensor.empty({size}) : {result}
  %{name} = linalg.generic {{indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}}
    ins(%{name}_s : {wide}) outs(%{name}_n : {result}) {{
    ^bb0(%a: f32, %o: {e}):
      %y = arith.truncf %a : f32 to {e}
      linalg.yield %y : {e}
  }} -> {result}"""
        return text

    if block.one_product:
        weights = [("%w", matrix(hidden, width + 2 * key_width))]
        products = multiply("qkv", "%h", "%w", hidden, width + 2 * key_width)
        for part, first, columns in (("q", 0, width), ("k", width, key_width),
                                     ("v", width + key_width, key_width)):
            products += f"""
  %{part}_p = tensor.extract_slice %qkv[0, {first}] [{length}, {columns}] [1, 1]
    : tensor<{t}x{width + 2 * key_width}x{e}> to tensor<{t}x{columns}x{e}>"""
    else:
        weights = [("%wq", matrix(hidden, width)), ("%wk", matrix(hidden, key_width)),
                   ("%wv", matrix(hidden, key_width))]
        products = (multiply("q_p", "%h", "%wq", hidden, width)
                    + multiply("k_p", "%h", "%wk", hidden, key_width)
                    + multiply("v_p", "%h", "%wv", hidden, key_width))
    arguments = [("%x", x), ("%g", f"tensor<{hidden}x{e}>")] + weights + [
        ("%wo", matrix(width, hidden)), ("%p", f"tensor<1x{t}xi64>")]
    results = [x]
    if has_cache:
        arguments += [("%n", "tensor<1xi64>"), ("%kc", cache), ("%vc", cache)]
        results += [cache, cache]
        attend = f"""
  %c:2 = posenc.kv_append cache_layout = head_major
    ins(%kr, %v : {key_heads}, {key_heads}) lengths(%n : tensor<1xi64>)
    outs(%kc, %vc : {cache}, {cache})
  %a4 = posenc.attention causal key_layout = head_major
    ins(%qr, %c#0, %c#1 : {heads}, {cache}, {cache}) lengths(%n : tensor<1xi64>)
    outs(%qe : {heads})"""
        returned = "%r, %c#0, %c#1"
    else:
        attend = f"""
  %a4 = posenc.attention causal
    ins(%qr, %kr, %v : {heads}, {key_heads}, {key_heads}) outs(%qe : {heads})"""
        returned = "%r"
    signature = ",\n    ".join(f"{n}: {ty}" for n, ty in arguments)
    dim = "" if block.is_static else f"\n  %t = tensor.dim %x, %c0 : {x}"
    split = "".join(f"""
  %{part} = tensor.expand_shape %{part}_p [[0, 1], [2, 3]]
    output_shape [1, {length}, {count}, {block.dim}]
    : tensor<{t}x{count * block.dim}x{e}> into {ty}""" for part, count, ty in (
        ("q", block.heads, heads), ("k", block.key_heads, key_heads),
        ("v", block.key_heads, key_heads)))
    text = f"""func.func @{name}({signature})
    -> ({", ".join(results)}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %size = arith.constant {float(hidden)} : f32
  %eps = arith.constant 1.0e-6 : f32{dim}
  %s_e = tensor.empty({size}) : {sums}
  %s_f = linalg.fill ins(%zero : f32) outs(%s_e : {sums}) -> {sums}
  %s = linalg.generic {{indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}}
    ins(%x : {x}) outs(%s_f : {sums}) {{
    ^bb0(%a: {e}, %o: f32):{widen("a")}
      %q2 = arith.mulf {use("a")}, {use("a")} : f32
      %y = arith.addf %o, %q2 : f32
      linalg.yield %y : f32
  }} -> {sums}
  %x_e = tensor.empty({size}) : {x}
  %h = linalg.generic {{indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}}
    ins(%x, %s, %g : {x}, {sums}, tensor<{hidden}x{e}>) outs(%x_e : {x}) {{
    ^bb0(%a: {e}, %b: f32, %d: {e}, %o: {e}):{widen("ad")}
      %m = arith.divf %b, %size : f32
      %m2 = arith.addf %m, %eps : f32
      %f = math.rsqrt %m2 : f32
      %y = arith.mulf {use("a")}, %f : f32
      %z = arith.mulf %y, {use("d")} : f32{narrow("%z")}
  }} -> {x}{products}{split}
  %qe = tensor.empty({size}) : {heads}
  %ke = tensor.empty({size}) : {key_heads}
  %qr, %kr = posenc.rope half #posenc.frequencies<dim = {block.dim}>
    ins(%q, %k : {heads}, {key_heads}) positions(%p : tensor<1x{t}xi64>) dims = [0, 1]
    outs(%qe, %ke : {heads}, {key_heads}){attend}
  %am = tensor.collapse_shape %a4 [[0, 1], [2, 3]] : {heads} into tensor<{t}x{width}x{e}>
  %o_e = tensor.empty({size}) : tensor<{t}x{hidden}xf32>
  %o_f = linalg.fill ins(%zero : f32) outs(%o_e : tensor<{t}x{hidden}xf32>) -> tensor<{t}x{hidden}xf32>
  %op = linalg.matmul ins(%am, %wo : tensor<{t}x{width}x{e}>, {matrix(width, hidden)})
    outs(%o_f : tensor<{t}x{hidden}xf32>) -> tensor<{t}x{hidden}xf32>
  %r = linalg.generic {{indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}}
    ins(%x, %op : {x}, tensor<{t}x{hidden}xf32>) outs(%x_e : {x}) {{
    ^bb0(%a: {e}, %b: f32, %o: {e}):{widen("a")}
      %y = arith.addf {use("a")}, %b : f32{narrow("%y")}
  }} -> {x}
  return {returned} : {", ".join(results)}
}}
"""
    if block.wrong == "norm":
        text = text.replace("1.0e-6", "1.0e-1")
    if block.wrong == "rope":
        text = text.replace("posenc.rope half", "posenc.rope interleaved")
    if block.wrong == "mask":
        text = text.replace("attention causal", "attention")
    return text


MAPS = """#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
"""


def check(run, folder, block, np, random, level=0):
    """Returns whether the results are close to those of NumPy in f64. `level` is that of
    optimization."""

    def round_to_type(values):
        if block.dtype == "f32":
            return np.asarray(values, np.float32)
        bits = np.asarray(values, np.float32).view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def widen(stored):
        if block.dtype == "f32":
            return stored.astype(np.float64)
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    def rounded(values):
        return values if block.dtype == "f32" else widen(round_to_type(values))

    tokens, heads, key_heads, dim = block.tokens, block.heads, block.key_heads, block.dim
    arrays, files = [], []

    def make(*shape, scale=1.0):
        arrays.append(round_to_type(random.standard_normal(shape) * scale))
        return widen(arrays[-1])

    x, g = make(tokens, block.hidden), make(block.hidden)
    widths = [block.width, block.key_width, block.key_width]
    scale = block.hidden ** -0.5
    if block.one_product:
        w = np.split(make(block.hidden, sum(widths), scale=scale), np.cumsum(widths)[:-1], 1)
    else:
        w = [make(block.hidden, width, scale=scale) for width in widths]
    wo = make(block.width, block.hidden, scale=block.width ** -0.5)
    past = max(block.past, 0)
    positions = np.arange(past, past + tokens)
    arrays.append(positions[None])
    if block.past >= 0:
        arrays.append(np.array([past + tokens]))
        caches = [make(1, key_heads, block.slots, dim)[0] for _ in range(2)]
    for number, array in enumerate(arrays):
        np.save(f"{folder}/{number}.npy", array)
        files.append(f"--input=@{folder}/{number}.npy")
    num_results = 1 if block.past < 0 else 3
    files += [f"--output=@{folder}/r{i}.npy" for i in range(num_results)]
    with open(f"{folder}/block.mlir", "w") as file:
        file.write(MAPS + get_text(block))
    subprocess.run([run, f"{folder}/block.mlir", f"--opt-level={level}"] + files, check=True)

    h = rounded(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g)
    q, k, v = [rounded(h @ part).reshape(tokens, -1, dim) for part in w]
    angles = positions[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]

    def rotate(rows):
        a, b = np.split(rows, 2, -1)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    q, k, v = rotate(q), rotate(k).transpose(1, 0, 2), v.transpose(1, 0, 2)
    if block.past >= 0:
        expected = [cache.copy() for cache in caches]
        for cache, rows in zip(expected, (k, v)):
            cache[:, past:past + tokens] = rounded(rows)
        k, v = [cache[:, :past + tokens] for cache in expected]
    group = heads // key_heads
    scores = np.einsum("thd,hkd->htk", q, k.repeat(group, 0)) * dim ** -0.5
    keys = np.arange(past + tokens)
    scores = np.where(keys[None] <= positions[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    o = np.einsum("htk,hkd->thd", weights, v.repeat(group, 0)).reshape(tokens, -1)
    expected = [x + rounded(o) @ wo] + (expected if block.past >= 0 else [])
    limit = 2e-6 if block.dtype == "f32" else 6e-3
    for number, values in enumerate(expected):
        result = widen(np.load(f"{folder}/r{number}.npy")).reshape(values.shape)
        error = np.linalg.norm(result - values) / np.linalg.norm(values)
        if not error < limit:
            return False
    return True


def main():
    if sys.argv[1] == "--print":
        dtype = sys.argv[2]
        print(get_text(Block(1024, 2048, 16, 4, 128, dtype, past=0), dtype + "_block"), end="")
        return
    import numpy as np
    run, folder = sys.argv[1:]
    random = np.random.default_rng(3)
    count = wrong = 0
    for dtype in ("f32", "bf16"):
        forms = list(itertools.product((False, True), (-1, 9), (False, True)))
        blocks = [Block(37, 192, 6, 2, 32, dtype, *form) for form in forms]
        for sizes in ((5, 64, 4, 4, 16), (1, 128, 8, 2, 64), (130, 256, 4, 1, 128)):
            blocks += [Block(*sizes, dtype, False, 9), Block(*sizes, dtype, True, -1)]
        for block in blocks:
            # Every sixth is optimized: of both types, with a cache and without one, with
            # one product and with three.
            level = 3 if count % 6 == 3 else 0
            count += 1
            if not check(run, folder, block, np, random, level):
                print("wrong:", block)
                wrong += 1
    found = 0
    for fault in ("norm", "rope", "mask"):
        block = Block(37, 192, 6, 2, 32, "bf16", past=9, wrong=fault)
        found += not check(run, folder, block, np, random)
    print(f"{count} blocks, {wrong} wrong, {found} faults found")


main()
