# ===- hlo.py - StableHLO and TTIR against NumPy ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""hlo.py POSENC-RUN FOLDER [--fault]: runs functions that have each operation once, with a result
for each, and compares the results with NumPy's. With --fault, NumPy's are changed, and
all comparisons have to fail."""

import subprocess
import sys

import numpy as np

RUN, FOLDER, *REST = sys.argv[1:]
random = np.random.default_rng(3)
X = random.standard_normal((4, 6)).astype(np.float32)
Y = random.standard_normal((4, 6)).astype(np.float32)
B = random.standard_normal((2, 3, 4)).astype(np.float32)
C = random.standard_normal((2, 4, 5)).astype(np.float32)
I = np.array([[3, -2, 7], [0, 5, -9]], np.int32)
J = np.array([[2, 3, -2], [0, -3, 4]], np.int32)
P = X > 0
ROWS = np.array([2, 9, 0], np.int64)
AT = np.array(1, np.int64)
INPUTS = {"x": X, "y": Y, "b": B, "c": C, "i": I, "j": J, "p": P, "rows": ROWS, "at": AT}
# Floats that integers of 32 and 8 bits have not, and their nearest integers, 0 for NaN.
ODD = "[0x7FC00000, 0x7F800000, 0xFF800000, 3.0e9, -200.7, 200.7]"
NEAREST = np.array([0, 2**31 - 1, -2**31, 2**31 - 1, -200, 200], np.int32)
BYTES = np.array([0, 255, 0, 255, 0, 200], np.int32)
KINDS = {"float32": "f32", "int32": "i32", "int64": "i64", "bool": "i1"}


def kind(array):
    return "x".join([*map(str, array.shape), KINDS[str(array.dtype)]])


TYPES = {name: f"tensor<{kind(array)}>" for name, array in INPUTS.items()}
T, TI, TP = TYPES["x"], TYPES["i"], TYPES["p"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def divide(a, b):
    """Division of integers towards zero, with -1 for a divisor of 0."""
    return np.where(b == 0, -1, np.trunc(a / np.where(b == 0, 1, b))).astype(a.dtype)


def rms(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def convolve():
    """The convolution among CASES, by its definition."""
    weights = np.concatenate([X.ravel()])[:16].reshape(2, 2, 4)
    image = np.pad(B, ((0, 0), (1, 2), (0, 0)))
    result = np.zeros((2, 4, 2), np.float32)
    for batch, channel, at, tap, inner in np.ndindex(2, 4, 2, 2, 2):
        result[batch, channel, at] += (image[batch, 2 * at + 2 * tap, channel // 2 * 2 + inner]
                                       * weights[tap, inner, channel])
    return result


def pretty(name, text, expected):
    return name, f"stablehlo.{text}", np.asarray(expected)


CASES = [
    pretty("add", f"add %x, %y : {T}", X + Y),
    pretty("add_types", f"add %x, %y : ({T}, {T}) -> {T}", X + Y),
    pretty("subtract", f"subtract %x, %y : {T}", X - Y),
    pretty("multiply", f"multiply %x, %y : {T}", X * Y),
    pretty("divide", f"divide %x, %y : {T}", X / Y),
    pretty("maximum", f"maximum %x, %y : {T}", np.maximum(X, Y)),
    pretty("minimum", f"minimum %i, %j : {TI}", np.minimum(I, J)),
    pretty("integers", f"divide %i, %j : {TI}", divide(I, J)),
    pretty("remainder", f"remainder %i, %j : {TI}", I - np.where(
        J == 0, 0, divide(I, J) * J)),
    pretty("abs", f"abs %x : {T}", abs(X)),
    pretty("exponential", f"exponential %x : {T}", np.exp(X)),
    pretty("cosine", f"cosine %x : {T}", np.cos(X)),
    pretty("sine", f"sine %x : {T}", np.sin(X)),
    pretty("tanh", f"tanh %x : {T}", np.tanh(X)),
    pretty("logistic", f"logistic %x : {T}", sigmoid(X)),
    pretty("negate", f"negate %i : {TI}", -I),
    pretty("sign", f"sign %x : {T}", np.sign(X)),
    pretty("floor", f"floor %x : {T}", np.floor(X)),
    pretty("not", f"not %p : {TP}", ~P),
    pretty("xor", f"xor %i, %j : {TI}", I ^ J),
    pretty("compare", f"compare LT, %x, %y, FLOAT : ({T}, {T}) -> {TP}", X < Y),
    pretty("select", f"select %p, %x, %y : {TP}, {T}", np.where(P, X, Y)),
    pretty("convert", f"convert %i : ({TI}) -> tensor<2x3xf32>", I.astype(np.float32)),
    pretty("saturate", "convert %odd : (tensor<6xf32>) -> tensor<6xi32>", NEAREST),
    pretty("saturate_bytes", "convert %bytes : (tensor<6xui8>) -> tensor<6xi32>", BYTES),
    pretty("dot_bytes", "dot_general %byte1, %byte1, contracting_dims = [0] x [0] : "
           "(tensor<1xui8>, tensor<1xui8>) -> tensor<i32>", BYTES[5:] @ BYTES[5:]),
    pretty("dynamic_slice_byte", "dynamic_slice %wide, %byte, sizes = [2] : "
           "(tensor<256xi32>, tensor<ui8>) -> tensor<2xi32>", np.arange(200, 202, dtype=np.int32)),
    pretty("truncate", f"convert %x : ({T}) -> tensor<4x6xi32>", X.astype(np.int32)),
    pretty("constant", "constant dense<[1.5, -2.0]> : tensor<2xf32>",
           np.array([1.5, -2], np.float32)),
    pretty("iota", "iota dim = 1 : tensor<2x3xf32>",
           np.broadcast_to(np.arange(3, dtype=np.float32), (2, 3))),
    pretty("broadcast_in_dim", f"broadcast_in_dim %rows, dims = [1] : "
           f"({TYPES['rows']}) -> tensor<2x3xi64>", np.broadcast_to(ROWS, (2, 3))),
    pretty("reshape", f"reshape %x : ({T}) -> tensor<3x8xf32>", X.reshape(3, 8)),
    pretty("transpose", f"transpose %b, dims = [2, 0, 1] : ({TYPES['b']}) -> "
           "tensor<4x2x3xf32>", B.transpose(2, 0, 1)),
    pretty("slice", f"slice %x [1:4, 0:6:2] : ({T}) -> tensor<3x3xf32>", X[1:4, ::2]),
    pretty("concatenate", f"concatenate %x, %y, dim = 1 : ({T}, {T}) -> "
           "tensor<4x12xf32>", np.concatenate([X, Y], 1)),
    pretty("reverse", f"reverse %x, dims = [1] : {T}", X[:, ::-1]),
    pretty("dot_general", "dot_general %b, %c, batching_dims = [0] x [0], "
           "contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : "
           f"({TYPES['b']}, {TYPES['c']}) -> tensor<2x3x5xf32>", B @ C),
    pretty("dot_other", "dot_general %x, %y, contracting_dims = [1] x [1] : "
           f"({T}, {T}) -> tensor<4x4xf32>", X @ Y.T),
    pretty("reduce", "reduce(%x init: %zero) applies stablehlo.add across "
           f"dimensions = [0] : ({T}, tensor<f32>) -> tensor<6xf32>", X.sum(0)),
    pretty("reduce_region", "reduce(%x init: %zero) across dimensions = [1] : "
           f"({T}, tensor<f32>) -> tensor<4xf32>\n"
           "    reducer(%u: tensor<f32>, %v: tensor<f32>) {\n"
           "      %w = stablehlo.maximum %u, %v : tensor<f32>\n"
           "      stablehlo.return %w : tensor<f32>\n    }",
           np.maximum(X.max(1), 0)),
    pretty("pad", "pad %x, %zero, low = [1, -2], high = [0, 1], interior = [0, 0] : "
           f"({T}, tensor<f32>) -> tensor<5x5xf32>",
           np.pad(X[:, 2:], ((1, 0), (0, 1)))),
    pretty("dynamic_slice", "dynamic_slice %x, %at, %at, sizes = [2, 5] : "
           f"({T}, tensor<i64>, tensor<i64>) -> tensor<2x5xf32>", X[1:3, 1:6]),
    pretty("dynamic_update_slice", "dynamic_update_slice %x, %part, %at, %at : "
           f"({T}, tensor<2x2xf32>, tensor<i64>, tensor<i64>) -> {T}",
           np.concatenate([X[:1], np.concatenate(
               [X[1:3, :1], np.ones((2, 2), np.float32), X[1:3, 3:]], 1), X[3:]])),
    pretty("clamp", f"clamp %zero, %x, %one : (tensor<f32>, {T}, tensor<f32>) -> {T}",
           np.clip(X, 0, 1)),
    pretty("imag", "imag %z : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>", 2 * X * Y),
    ("gather_byte", '"stablehlo.gather"(%wide, %column8) <{dimension_numbers = '
     "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : "
     "(tensor<256xi32>, tensor<1x1xui8>) -> tensor<1xi32>", np.array([200], np.int32)),
    ("gather", '"stablehlo.gather"(%x, %column) <{dimension_numbers = #stablehlo.gather<'
     "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, "
     f"indices_are_sorted = false}}> : ({T}, tensor<3x1xi64>) -> tensor<3x6xf32>",
     X[np.minimum(ROWS, 3)]),
    ("generic_compare", '"stablehlo.compare"(%x, %y) <{comparison_direction = '
     f"#stablehlo<comparison_direction GE>}}> : ({T}, {T}) -> {TP}", X >= Y),
    ("argmax", "stablehlo.reduce(%x init: %low), (%i6 init: %none) across dimensions = [1] : "
     f"({T}, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)\n"
     "    reducer(%r: tensor<f32>, %s: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>) {\n"
     "      %m = stablehlo.compare GT, %r, %s, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
     "      %n = stablehlo.select %m, %r, %s : tensor<i1>, tensor<f32>\n"
     "      %o = stablehlo.select %m, %k, %l : tensor<i1>, tensor<i32>\n"
     "      stablehlo.return %n, %o : tensor<f32>, tensor<i32>\n    }",
     (X.max(1), X.argmax(1).astype(np.int32))),
    pretty("popcnt", f"popcnt %j : {TI}", np.array(
        [[bin(n & 0xFFFFFFFF).count("1") for n in row] for row in J.tolist()], np.int32)),
    pretty("cbrt", f"cbrt %x : {T}", np.cbrt(X)),
    pretty("atan2", f"atan2 %x, %y : {T}", np.arctan2(X, Y)),
    pretty("round_nearest_even", f"round_nearest_even %x : {T}", np.round(X)),
    pretty("exponential_minus_one", f"exponential_minus_one %x : {T}", np.expm1(X)),
    ("chlo_top_k", f"chlo.top_k(%x, k = 3) : {T} -> (tensor<4x3xf32>, tensor<4x3xi32>)",
     (-np.sort(-X, 1)[:, :3], np.argsort(-X, 1, kind="stable")[:, :3].astype(np.int32))),
    ("top_k_ties", "chlo.top_k(%ties, k = 3) : (tensor<5xf32>) -> (tensor<3xf32>, "
     "tensor<3xi32>)", (np.array([2, -np.inf, -np.inf], np.float32),
                        np.array([3, 0, 1], np.int32))),
    ("top_k_zeros", "chlo.top_k(%zeros, k = 6) : (tensor<6xf32>) -> (tensor<6xf32>, "
     "tensor<6xi32>)", (np.array([np.nan, 0, 0, -0., -1, np.nan], np.float32),
                        np.array([4, 1, 3, 0, 2, 5], np.int32))),
    ("cumulative", '"stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [5, 0]]>'
     " : tensor<2x2xi64>, window_dimensions = array<i64: 1, 6>}> ({\n"
     "    ^bb0(%u: tensor<f32>, %v: tensor<f32>):\n"
     "      %w = stablehlo.add %u, %v : tensor<f32>\n"
     "      stablehlo.return %w : tensor<f32>\n    }) : "
     f"({T}, tensor<f32>) -> {T}", X.cumsum(1)),
    ("pool", '"stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [1, 1]]>'
     " : tensor<2x2xi64>, window_dimensions = array<i64: 2, 3>, "
     "window_strides = array<i64: 2, 2>}> ({\n"
     "    ^bb0(%u: tensor<f32>, %v: tensor<f32>):\n"
     "      %w = stablehlo.maximum %u, %v : tensor<f32>\n"
     "      stablehlo.return %w : tensor<f32>\n    }) : "
     f"({T}, tensor<f32>) -> tensor<2x3xf32>",
     np.pad(X, ((0, 0), (1, 1)))[:, [0, 1, 2, 2, 3, 4, 4, 5, 6]].reshape(
         2, 2, 3, 3).max((1, 3))),
    # The initial value is added once, also to windows with padding.
    ("pool_from_one", '"stablehlo.reduce_window"(%x, %one) <{padding = '
     "dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>}> ({\n"
     "    ^bb0(%u: tensor<f32>, %v: tensor<f32>):\n"
     "      %w = stablehlo.add %u, %v : tensor<f32>\n"
     "      stablehlo.return %w : tensor<f32>\n    }) : "
     f"({T}, tensor<f32>) -> {T}", X + np.pad(X, ((0, 1), (0, 0)))[1:] + 1),
    ("scatter", '"stablehlo.scatter"(%x, %column, %y3) <{scatter_dimension_numbers = '
     "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
     "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
     "    ^bb0(%u: tensor<f32>, %v: tensor<f32>):\n"
     "      %w = stablehlo.add %u, %v : tensor<f32>\n"
     "      stablehlo.return %w : tensor<f32>\n    }) : "
     f"({T}, tensor<3x1xi64>, tensor<3x6xf32>) -> {T}",
     X + np.stack([Y[2], 0 * X[1], Y[0], 0 * X[3]])),  # Row 9 is outside.
    ("convolution", "stablehlo.convolution(%b, %taps) dim_numbers = [b, 0, f]x[0, i, o]->"
     "[b, f, 0], window = {stride = [2], pad = [[1, 2]], rhs_dilate = [2]} "
     "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : "
     "(tensor<2x3x4xf32>, tensor<2x2x4xf32>) -> tensor<2x4x2xf32>", convolve()),
    ("case", '"stablehlo.case"(%index) ({\n      %u = stablehlo.sine %x : ' + T +
     f"\n      stablehlo.return %u : {T}\n    }}, {{\n      stablehlo.return %y : {T}\n"
     f"    }}) : (tensor<i32>) -> {T}", Y),
    pretty("while", "while(%k = %start) : tensor<i32>\n    cond {\n"
           "      %u = stablehlo.compare LT, %k, %index, SIGNED : (tensor<i32>, tensor<i32>) "
           "-> tensor<i1>\n      stablehlo.return %u : tensor<i1>\n    } do {\n"
           "      %u = stablehlo.add %k, %k : tensor<i32>\n"
           "      stablehlo.return %u : tensor<i32>\n    }", np.array(8, np.int32)),
    ("ttir_conv2d", '"ttir.conv2d"(%picture, %kernels) <{batch_dim = 0 : i64, channel_dim = 1 '
     ": i64, height_dim = 2 : i64, width_dim = 3 : i64, dilation = array<i32: 1, 1>, groups = "
     "1 : i32, padding = array<i32: 0, 0, 0, 0>, stride = array<i32: 3, 2>}> : "
     "(tensor<1x2x3x4xf32>, tensor<5x2x3x2xf32>) -> tensor<1x5x1x2xf32>",
     np.einsum("chxw,ochw->ox", B.reshape(2, 3, 2, 2),
               np.concatenate([C.ravel(), X.ravel()])[:60].reshape(5, 2, 3, 2))[None, :, None]),
    ("ttir_where", f'"ttir.where"(%p, %x, %one) : ({TP}, {T}, tensor<f32>) -> {T}',
     np.where(P, X, 1)),
    ("ttir_mean", '"ttir.mean"(%x) <{dim_arg = [-1 : i32], keep_dim = true}> : '
     f"({T}) -> tensor<4x1xf32>", X.mean(1, keepdims=True)),
    ("ttir_gelu", '"ttir.gelu"(%zero) : (tensor<f32>) -> tensor<f32>',
     np.array(0, np.float32)),
    ("ttir_rms", '"ttir.rms_norm"(%x) <{epsilon = 1.0e-5 : f32, normalized_shape = '
     f"array<i64: 6>}}> : ({T}) -> {T}", rms(X)),
    ("ttir_eq", f'"ttir.eq"(%i, %i) : ({TI}, {TI}) -> {TP.replace("4x6", "2x3")}',
     np.ones((2, 3), bool)),
    ("ttir_softmax", '"ttir.softmax"(%x) <{dimension = 1 : si32}> : '
     f"({T}) -> {T}", np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    ("ttir_embedding", f'"ttir.embedding"(%rows, %x) : ({TYPES["rows"]}, {T}) -> '
     "tensor<3x6xf32>", X[np.minimum(ROWS, 3)]),
    ("ttir_arange", '"ttir.arange"() <{arange_dimension = 0 : i64, start = 2 : si64, '
     'end = 8 : si64, step = 2 : si64}> : () -> tensor<3xi64>', np.array([2, 4, 6])),
    ("ttir_argmax", '"ttir.argmax"(%x) <{dim_arg = [1 : i32], keep_dim = false}> : '
     f"({T}) -> tensor<4xi32>", X.argmax(1).astype(np.int32)),
    ("ttir_matmul", '"ttir.matmul"(%x, %y) <{transpose_a = false, transpose_b = true}> : '
     f"({T}, {T}) -> tensor<4x4xf32>", X @ Y.T),
]
SETUP = f"""\
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %odd = stablehlo.constant dense<{ODD}> : tensor<6xf32>
    %bytes = stablehlo.convert %odd : (tensor<6xf32>) -> tensor<6xui8>
    %byte1 = stablehlo.slice %bytes [5:6] : (tensor<6xui8>) -> tensor<1xui8>
    %byte = stablehlo.reshape %byte1 : (tensor<1xui8>) -> tensor<ui8>
    %column8 = stablehlo.reshape %byte1 : (tensor<1xui8>) -> tensor<1x1xui8>
    %wide = stablehlo.iota dim = 0 : tensor<256xi32>
    %one = "stablehlo.constant"() <{{value = dense<1.0> : tensor<f32>}}> : () -> tensor<f32>
    %part = stablehlo.constant dense<1.0> : tensor<2x2xf32>
    %column = stablehlo.reshape %rows : ({TYPES["rows"]}) -> tensor<3x1xi64>
    %q = stablehlo.complex %x, %y : ({T}, {T}) -> tensor<4x6xcomplex<f32>>
    %z = stablehlo.multiply %q, %q : tensor<4x6xcomplex<f32>>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %start = stablehlo.constant dense<1> : tensor<i32>
    %index1 = stablehlo.slice %i [0:1, 2:3] : ({TI}) -> tensor<1x1xi32>
    %index = stablehlo.reshape %index1 : (tensor<1x1xi32>) -> tensor<i32>
    %i6 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %ties = stablehlo.constant dense<[0xFF800000, 0xFF800000, 0xFF800000, 2.0, 0xFF800000]> : tensor<5xf32>
    %zeros = stablehlo.constant dense<[-0.0, 0.0, -1.0, 0.0, 0x7FC00000, 0xFFC00000]> : tensor<6xf32>
    %y3 = stablehlo.slice %y [0:3, 0:6] : ({T}) -> tensor<3x6xf32>
    %flat = stablehlo.reshape %x : ({T}) -> tensor<24xf32>
    %flat16 = stablehlo.slice %flat [0:16] : (tensor<24xf32>) -> tensor<16xf32>
    %taps = stablehlo.reshape %flat16 : (tensor<16xf32>) -> tensor<2x2x4xf32>
    %flatc = stablehlo.reshape %c : ({TYPES["c"]}) -> tensor<40xf32>
    %all = stablehlo.concatenate %flatc, %flat, dim = 0 : (tensor<40xf32>, tensor<24xf32>) -> tensor<64xf32>
    %all60 = stablehlo.slice %all [0:60] : (tensor<64xf32>) -> tensor<60xf32>
    %kernels = stablehlo.reshape %all60 : (tensor<60xf32>) -> tensor<5x2x3x2xf32>
    %picture = stablehlo.reshape %b : ({TYPES["b"]}) -> tensor<1x2x3x4xf32>
"""


def run(cases, number):
    """Returns how many operations are wrong."""
    body = "".join(f"    %{name}{':2' * isinstance(expected, tuple)} = {text}\n"
                   for name, text, expected in cases)
    cases = [case for name, text, expected in cases for case in (
        [(f"{name}#{number}", text, one) for number, one in enumerate(expected)]
        if isinstance(expected, tuple) else [(name, text, expected)])]
    types = ", ".join(f"tensor<{kind(expected)}>" for *_, expected in cases)
    names = ", ".join(f"%{name}" for name, *_ in cases)
    parameters = ", ".join(f"%{name}: {type}" for name, type in TYPES.items())
    path = f"{FOLDER}/ops{number}.mlir"
    with open(path, "w") as file:
        file.write("module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n"
                   f"  func.func public @main({parameters}) -> ({types}) {{\n{SETUP}"
                   f"{body}    return {names} : {types}\n  }}\n}}\n")
    command = [RUN, path, "--function=main", "--opt-level=0"]
    for name, array in INPUTS.items():
        np.save(f"{FOLDER}/{name}.npy", array)
        command.append(f"--input=@{FOLDER}/{name}.npy")
    command += [f"--output=@{FOLDER}/r_{name}.npy" for name, *_ in cases]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    wrong = 0
    for name, _, expected in cases:
        got = np.load(f"{FOLDER}/r_{name}.npy")
        if REST:
            expected = (~expected if expected.dtype == bool else
                        np.where(np.isfinite(expected), expected + 1, 0))
        if got.shape != expected.shape or not np.allclose(got, expected, rtol=1e-5,
                                                          atol=1e-6, equal_nan=True):
            wrong += 1
            if not REST:
                print(f"{name}: expected\n{expected}\ngot\n{got}")
    return wrong


CACHE = random.standard_normal((3, 2, 5, 4)).astype(np.float32)
NEW = random.standard_normal((1, 2, 3, 4)).astype(np.float32)
# Name, rows, indices, attributes, and where NumPy writes which rows.
WRITES = [
    ("one_index", NEW, [3], "batch_offset = 0 : i32",
     lambda cache: cache.__setitem__((slice(None), slice(None), 3), NEW[0].swapaxes(0, 1))),
    ("indices", NEW, [4, 0, 2], "batch_offset = 0 : i32",
     lambda cache: cache.__setitem__(([0, 1, 2], slice(None), [4, 0, 2]), NEW[0].swapaxes(0, 1))),
    ("first_dimension", NEW.transpose(2, 1, 0, 3), [1], "batch_offset = 0 : i32",
     lambda cache: cache.__setitem__((slice(None), slice(None), 1), NEW[0].swapaxes(0, 1))),
    ("fill", NEW, None, "batch_offset = 2 : i32",
     lambda cache: cache.__setitem__((2, slice(None), slice(0, 3)), NEW[0])),
]


def run_writes():
    """Returns how many writes to caches, which become results, are wrong."""
    wrong = 0
    for name, rows, indices, attributes, write in WRITES:
        tensors = [CACHE, rows] + ([] if indices is None else [np.array(indices, np.int64)])
        types = [f"tensor<{kind(tensor)}>" for tensor in tensors]
        parameters = ", ".join(f"%a{number}: {type}" for number, type in enumerate(types))
        operands = ", ".join(f"%a{number}" for number in range(len(types)))
        op = "fill_cache" if indices is None else "update_cache"
        path = f"{FOLDER}/write.mlir"
        with open(path, "w") as file:
            file.write(f"""module {{
  func.func @main({parameters}) -> {types[1]} {{
    "ttir.{op}"({operands}) <{{{attributes}}}> : ({", ".join(types)}) -> ()
    return %a1 : {types[1]}
  }}
}}
""")
        command = [RUN, path, "--function=main", "--opt-level=0"]
        for number, tensor in enumerate(tensors):
            np.save(f"{FOLDER}/a{number}.npy", tensor)
            command.append(f"--input=@{FOLDER}/a{number}.npy")
        command += [f"--output=@{FOLDER}/rows.npy", f"--output=@{FOLDER}/cache.npy"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        expected = CACHE.copy()
        write(expected)
        if REST:
            expected += 1
        if not np.array_equal(np.load(f"{FOLDER}/cache.npy"), expected):
            wrong += 1
            if not REST:
                print(f"{name}: wrong")
    return wrong


def main():
    # Calls take at most 32 arrays.
    wrong = sum(run(CASES[start:start + 20], start) for start in range(0, len(CASES), 20))
    wrong += run_writes()
    results = sum(len(expected) if isinstance(expected, tuple) else 1 for *_, expected in CASES)
    results += len(WRITES)
    print(f"{results} operations, {wrong} wrong")
    return wrong != (results if REST else 0)


if __name__ == "__main__":
    sys.exit(main())
