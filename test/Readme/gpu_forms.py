# ===- gpu_forms.py - attention of the README's rows about GPUs -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
#
# A function for each item of the rows "attention on GPUs" and "not on GPUs".

I64, BOUNDS = "tensor<?xi64>", "tensor<?xi32>"


def attention(flags="", operands="", arguments=(), region="", dtype="bf16",
              dim=16, value_dim=None, keys=None, queries="?x?x4", heads="2",
              sums=False):
    """Returns a function @f with one attention. `arguments` are (name, type) pairs
    besides those of queries, keys, values and outputs; `keys` is the type of keys
    and values; `sums` asks for the logarithms of the sums, too."""
    value_dim = value_dim or dim
    q, o = f"tensor<{queries}x{dim}x{dtype}>", f"tensor<{queries}x{value_dim}x{dtype}>"
    k = keys or f"tensor<?x?x{heads}x{dim}x{dtype}>"
    v = keys or f"tensor<?x?x{heads}x{value_dim}x{dtype}>"
    outputs = {"%o": o}
    if sums:
        outputs["%l"] = f"tensor<{queries}xf32>"
    names, types = ", ".join(outputs), ", ".join(outputs.values())
    signature = ", ".join(f"{name}: {kind}" for name, kind in [
        ("%q", q), ("%k", k), ("%v", v), *outputs.items(), *arguments])
    results = ", ".join(f"%r#{i}" for i in range(len(outputs)))
    return (f"func.func @f({signature}) -> ({types}) {{\n"
            f"  %r:{len(outputs)} = posenc.attention {flags} ins(%q, %k, %v : "
            f"{q}, {k}, {v}) {operands} outs({names} : {types}) {region}\n"
            f"  return {results} : {types}\n}}\n")


def rotation(pairing, dim=16, offset=0):
    value = (f"<pairing = {pairing}, frequencies = <dim = {dim}>, "
             f"offset = {offset}>")
    return attention(f"causal query_rotation = {value} key_rotation = {value}",
                     "query_positions(%p : tensor<?x?xi64>)",
                     [("%p", "tensor<?x?xi64>")])


def operand(name, kind, flags="", **options):
    return attention(flags, f"{name}(%x : {kind})", [("%x", kind)], **options)


def score(body):
    return attention(region=f"score(%s, %b, %h, %i, %j) {{ {body}\n"
                            "posenc.yield %y : f32 }")


def where(body):
    return attention(region=f"where(%b, %h, %i, %j) {{ {body}\n"
                            "posenc.yield %y : i1 }")


def quantized(element):
    scales = "tensor<?x?x2xf32>"
    return attention(
        operands=f"key_scales(%ks : {scales}) value_scales(%vs : {scales})",
        arguments=[("%ks", scales), ("%vs", scales)],
        keys=f"tensor<?x?x2x16x{element}>")


def norms(weights):
    kinds = [f"tensor<{size}xbf16>" for size in weights]
    return attention("norm_eps = 1.0e-6", f"query_norm(%w : {kinds[0]}) "
                     f"key_norm(%x : {kinds[1]})",
                     [("%w", kinds[0]), ("%x", kinds[1])])


DIFFERENCE = "%d = arith.subi %i, %j : index\n"
TO_FLOAT = ("%m = arith.index_cast %n : index to i32\n"
            "%f = arith.sitofp %m : i32 to f32\n"
            "%y = arith.addf %s, %f : f32")

SUPPORTED = {
    **{dtype: attention("causal", dtype=dtype)
       for dtype in ("f16", "bf16", "f32", "f64")},
    "half": rotation("half"),
    "interleaved": rotation("interleaved"),
    "rotary windows": rotation("half", dim=8, offset=4),
    "norms per head": norms((16, 16)),
    "grouped heads": attention(queries="?x?x12", heads="3"),
    "values of another width": attention(dim=64, value_dim=32),
    "head-major": attention("query_layout = head_major", queries="?x4x?"),
    "causal": attention("causal"),
    "windows": attention("window_left = 128 window_right = 4"),
    "masks": operand("mask", "tensor<1x1x?x?xi1>"),
    "where": where("%y = arith.cmpi sge, %i, %j : index"),
    "score": score("%y = math.tanh %s : f32"),
    "alibi": score("%a = posenc.alibi(%h, %i, %j) heads = 4 : f32\n"
                   "%y = arith.addf %s, %a : f32"),
    "t5_bucket": score(DIFFERENCE + "%n = posenc.t5_bucket %d : index\n" + TO_FLOAT),
    "sinks": operand("sinks", "tensor<4xf32>"),
    "lse": attention("causal", sums=True),
    "lengths": operand("lengths", I64),
    "cu_seqlens": attention(
        "causal", f"cu_seqlens(%c, %c : {BOUNDS}, {BOUNDS})", [("%c", BOUNDS)],
        queries="?x4", keys="tensor<?x2x16xbf16>"),
    "block_table": attention(
        "causal", "lengths(%n : tensor<?xi32>) block_table(%t : tensor<?x?xi32>)",
        [("%n", "tensor<?xi32>"), ("%t", "tensor<?x?xi32>")],
        queries="?x1x4", keys="tensor<?x16x2x16xbf16>"),
    "i8": quantized("i8"),
    "f8E4M3FN": quantized("f8E4M3FN"),
    "f8E5M2": quantized("f8E5M2"),
}


def kv_append():
    heads, dim = 2, 16
    t, u = f"tensor<?x?x{heads}x{dim}xf32>", f"tensor<?x{heads}x?x{dim}xf32>"
    return (f"func.func @f(%k: {t}, %n: {I64}, %a: {u}, %b: {u}) -> ({u}, {u}) {{\n"
            "  %r:2 = posenc.kv_append cache_layout = head_major rotation = <pairing = "
            f"half, frequencies = <dim = {dim}>> ins(%k, %k : {t}, {t}) "
            f"lengths(%n : {I64}) outs(%a, %b : {u}, {u})\n"
            f"  return %r#0, %r#1 : {u}, {u}\n}}\n")


def quantized_append(heads=2):
    t, u = f"tensor<?x?x{heads}x128xbf16>", f"tensor<?x?x{heads}x128xi8>"
    s = f"tensor<?x{heads}x?xf32>"
    caches = f"{u}, {u}, {s}, {s}"
    return (f"func.func @f(%k: {t}, %n: {I64}, %a: {u}, %b: {u}, %c: {s}, %d: {s}) "
            f"-> ({caches}) {{\n  %r:4 = posenc.kv_append ins(%k, %k : {t}, {t}) "
            f"lengths(%n : {I64}) outs(%a, %b, %c, %d : {caches})\n"
            f"  return %r#0, %r#1, %r#2, %r#3 : {caches}\n}}\n")


def softmax():
    t = "tensor<?x64xbf16>"
    return (f"func.func @f(%a: {t}, %o: {t}) -> {t} {{\n"
            f"  %r = linalg.softmax dimension(1) ins(%a : {t}) outs(%o : {t}) -> {t}\n"
            f"  return %r : {t}\n}}\n")


def key_norm():
    t = "tensor<?x?x2x16xbf16>"
    return (f"func.func @f(%k: {t}, %w: tensor<16xbf16>, %n: {I64}, %a: {t}, %b: {t}) "
            f"-> ({t}, {t}) {{\n  %r:2 = posenc.kv_append norm_eps = 1.0e-6 "
            f"ins(%k, %k : {t}, {t}) norm(%w : tensor<16xbf16>) lengths(%n : {I64}) "
            f"outs(%a, %b : {t}, {t})\n  return %r#0, %r#1 : {t}, {t}\n}}\n")


def matmul():
    t = "tensor<16x16xf32>"
    return (f"func.func @f(%a: {t}, %o: {t}) -> {t} {{\n"
            f"  %r = linalg.matmul ins(%a, %a : {t}, {t}) outs(%o : {t}) -> {t}\n"
            f"  return %r : {t}\n}}\n")


def reduction():
    t, u = "tensor<16x16xf32>", "tensor<16xf32>"
    return (f"func.func @f(%a: {t}, %o: {u}) -> {u} {{\n"
            f"  %r = linalg.reduce {{ arith.addf }} ins(%a : {t}) outs(%o : {u}) "
            f"dimensions = [1]\n  return %r : {u}\n}}\n")


# Operations that Vulkan devices lack.
ROWS = {
    "kv_append": kv_append(),
    "quantized kv_append": quantized_append(),
    "reductions": reduction(),
    "softmax": softmax(),
    "norms": key_norm(),
    "maximumf": score("%y = arith.maximumf %s, %s : f32"),
    "minimumf": score("%y = arith.minimumf %s, %s : f32"),
    "maxui": where("%a = arith.maxui %i, %j : index\n"
                   "%y = arith.cmpi eq, %a, %i : index"),
    "minui": where("%a = arith.minui %i, %j : index\n"
                   "%y = arith.cmpi eq, %a, %i : index"),
    "fptosi": score("%a = arith.fptosi %s : f32 to i32\n"
                    "%y = arith.sitofp %a : i32 to f32"),
    "remf": score("%y = arith.remf %s, %s : f32"),
}

# The function, and what the warning about it says.
UNSUPPORTED = {
    "matmul": (matmul(), "'linalg.matmul'"),
    "rows wider than shared memory": (quantized_append(heads=256), "'scf.forall'"),
    "heads of 20": (attention(dim=20), "not a multiple of 8"),
    "bf16 heads of 1032": (attention(dim=1032), "do not fit"),
    "f32 heads of 776": (attention(dim=776, dtype="f32"), "do not fit"),
    "f64 heads of 392": (attention(dim=392, dtype="f64"), "do not fit"),
    "dynamic heads": (attention(queries="?x?x?", heads="?"),
                      "number of heads is dynamic"),
    "norms over all heads": (norms((64, 32)), "norm over all heads"),
}
