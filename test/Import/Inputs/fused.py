# ===- fused.py - models of fused operators --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""fused.py: writes the models of fused.test into the current folder."""

from onnx_model import node, tensor, write

# Rotations of queries and keys at gathered positions, and causal attention.
tables = [tensor("cos", "f32", [64, 8], [1.0] * 512),
          tensor("sin", "f32", [64, 8], [0.0] * 512)]
heads = {"q": ("f32", ["b", "s", 64]), "k": ("f32", ["b", "s", 32]),
         "v": ("f32", ["b", "s", 32]), "positions": ("i64", ["b", "s"])}
write("block.onnx", [
    node("RotaryEmbedding", ["q", "cos", "sin", "positions"], ["rq"], num_heads=4),
    node("RotaryEmbedding", ["k", "cos", "sin", "positions"], ["rk"], num_heads=2,
         interleaved=1),
    node("Attention", ["rq", "rk", "v"], ["o"], q_num_heads=4, kv_num_heads=2,
         is_causal=1, softcap=30.0, scale=0.25)], heads, ["o"], tables)

# Keys behind past ones, with a mask.
write("cache.onnx", [
    node("Attention", ["q", "k", "v", "mask", "pk", "pv"], ["o", "nk", "nv"],
         is_causal=1)],
      {"q": ("f32", ["b", 4, "s", 16]), "k": ("f32", ["b", 2, "s", 16]),
       "v": ("f32", ["b", 2, "s", 16]), "mask": ("bool", ["s", "t"]),
       "pk": ("f32", ["b", 2, "p", 16]), "pv": ("f32", ["b", 2, "p", 16])},
      ["o", "nk", "nv"])

# More keys than queries without past ones: query i sees key j <= i.
write("leading.onnx", [node("Attention", ["q", "k", "k"], ["o"], is_causal=1)],
      {"q": ("f32", [1, 2, 3, 8]), "k": ("f32", [1, 2, 5, 8])}, ["o"])

# The cache keeps its size, so it is written in place.
write("group.onnx", [
    node("GroupQueryAttention", ["q", "k", "v", "pk", "pv", "seqlens", "total"],
         ["o", "nk", "nv"], "com.microsoft", num_heads=4, kv_num_heads=2,
         local_window_size=8)],
      {"q": ("f32", ["b", 1, 64]), "k": ("f32", ["b", 1, 32]),
       "v": ("f32", ["b", 1, 32]), "pk": ("f32", ["b", 2, 128, 16]),
       "pv": ("f32", ["b", 2, 128, 16]), "seqlens": ("i32", ["b"]),
       "total": ("i32", [1])},
      {"o": ("f32", ["b", 1, 64]), "nk": ("f32", ["b", 2, 128, 16]),
       "nv": ("f32", ["b", 2, 128, 16])})

# Attributes with the values that they have by default, outputs that nobody reads, and
# inputs that are absent.
write("accepted.onnx", [
    node("SkipSimplifiedLayerNormalization", ["x", "x", "scale"],
         ["a", "mean", "inverse", "sum"], "com.microsoft", epsilon=1e-12),
    node("SkipLayerNormalization", ["a", "x", "scale", "", ""],
         ["b", "mean1", "inverse1", "sum1"], "com.microsoft"),
    node("LayerNormalization", ["b", "scale", ""], ["c", "mean2", "inverse2"], axis=-1,
         epsilon=1e-5, stash_type=1),
    node("Dropout", ["c"], ["d", "mask"], seed=0),
    node("GroupQueryAttention",
         ["d", "d", "d", "", "", "lengths", "total", *[""] * 10], ["e", "", "", "qk"],
         "com.microsoft", num_heads=2, kv_num_heads=2, causal=1, do_rotary=0,
         rotary_interleaved=0, local_window_size=-1, smooth_softmax=-1, softcap=0.0,
         scale=0.0, qk_output=0, kv_cache_bit_width=0, k_quant_type="NONE",
         v_quant_type="NONE", sliding_window_cache=0, qk_norm_epsilon=1e-6),
    node("MultiHeadAttention", ["e", "e", "e"], ["f", "nk", "nv", "qk1"],
         "com.microsoft", num_heads=2, unidirectional=0, mask_filter_value=-10000.0),
    node("Attention", ["f", "f", "f"], ["y", "nk1", "nv1", "qk2"], is_causal=0,
         q_num_heads=2, kv_num_heads=2, qk_matmul_output_mode=0, softcap=0.0,
         left_window_size=-1, right_window_size=-1),
    node("Range", ["zero", "three", "one"], ["r"], stash_type=1)],
      {"x": ("f32", ["b", "s", 32]), "lengths": ("i32", ["b"]), "total": ("i32", [1])},
      ["y", "r"],
      [tensor("scale", "f32", [32], [1.0] * 32),
       *[tensor(name, "f32", [], [value]) for name, value in
         (("zero", 0.0), ("three", 3.0), ("one", 1.0))]])

# Sizes of a model: Shape, Gather, Concat, Reshape.
write("shapes.onnx", [
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "zero"], ["batch"]),
    node("Concat", ["batch", "rest"], ["new"], axis=0),
    node("Reshape", ["x", "new"], ["y"]),
    node("Transpose", ["y"], ["z"], perm=[0, 2, 1, 3])],
      {"x": ("f32", ["batch", "tokens", 64])}, ["z"],
      [tensor("zero", "i64", [1], [0]), tensor("rest", "i64", [3], [-1, 4, 16])],
      name="not a name")

# Indices that are all pairs of a table's rows and columns, and others.
write("pairs.onnx", [
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "zero"], ["m"]), node("Gather", ["shape", "one"], ["n"]),
    node("Range", ["zero", "m", "one"], ["i"]), node("Unsqueeze", ["i", "last"], ["rows"]),
    node("Range", ["zero", "n", "one"], ["columns"]),
    *[node("Expand", [name, "shape"], [f"all_{name}"]) for name in ("rows", "columns")],
    *[node("Unsqueeze", [f"all_{name}", "last"], [f"each_{name}"])
      for name in ("rows", "columns")],
    node("Concat", ["each_rows", "each_columns"], ["pairs"], axis=-1),
    node("GatherND", ["x", "pairs"], ["y"]), node("Gather", ["x", "p"], ["z"]),
    node("Gather", ["y", "i"], ["u"]), node("Neg", ["p"], ["q"]),
    node("Gather", ["x", "q"], ["v"], name="computed")],
      {"x": ("f32", ["m", "n"]), "p": ("i32", ["k"])}, ["u", "v", "z"],
      [tensor("zero", "i64", [], [0]), tensor("one", "i64", [], [1]),
       tensor("last", "i64", [1], [-1])])

# A condition that follows from sizes chooses a table, and a known one a branch.
tables = [{"nodes": [], "inputs": {}, "outputs": ["t"],
           "initializers": [tensor("t", "f32", [rows, 3], [1.0 * rows] * rows * 3)]}
          for rows in (4, 9)]
negate = {"nodes": [node("Neg", ["row"], ["u"])], "inputs": {}, "outputs": ["u"]}
write("branch.onnx", [
    node("Shape", ["x"], ["n"]), node("Greater", ["n", "four"], ["isLong"]),
    node("If", ["isLong"], ["table"], then_branch=tables[1], else_branch=tables[0]),
    node("Gather", ["table", "last"], ["row"]),
    node("If", ["yes"], ["y"], then_branch=negate, else_branch=tables[0])],
      {"x": ("f32", ["n"])}, ["y"],
      [tensor("four", "i64", [1], [4]), tensor("last", "i64", [], [-1]),
       tensor("yes", "bool", [], [True])])

# A product with codes of 4 bits, in panels of 64 columns.
write("codes.onnx", [
    node("MatMulNBits", ["x", "codes", "scales"], ["y"], "com.microsoft", K=64, N=128,
         bits=4, block_size=32)], {"x": ("f16", ["n", 64])}, ["y"],
      [tensor("codes", "u8", [128, 2, 16], raw=bytes(i % 251 for i in range(128 * 32))),
       tensor("scales", "f16", [128, 2], [1.0] * 256)])
