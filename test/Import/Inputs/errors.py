# ===- errors.py - malformed and unsupported models ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""errors.py POSENC-COMPILE: compiles models that are wrong in one place each, and
checks that the message says so and that the exit code is 1."""

import os
import subprocess
import sys

from onnx_model import field, model, node, tensor

X = {"x": ("f32", ["n", 4])}
ADD = node("Add", ["x", "x"], ["y"], name="sum")
good = model([ADD], X, ["y"])
weight = [tensor("w", "f32", [4, 2], [0.0] * 8)]
os.makedirs("outside", exist_ok=True)
os.makedirs("in", exist_ok=True)
for name in ("outside/data", "in/data"):
    with open(name, "wb") as file:
        file.write(bytes(16))
if not os.path.islink("in/link"):
    os.symlink(os.path.abspath("outside/data"), "in/link")
for link, target in (("loop", "loop"), ("zero", "/dev/zero"), ("up", "..")):
    if not os.path.islink(f"in/{link}"):
        os.symlink(target, f"in/{link}")
if not os.path.exists("in/pipe"):
    os.mkfifo("in/pipe")
open("in/none", "wb").close()
OFFSET = "offset of external data is not a number"


def external(**keys):
    return model([node("MatMul", ["x", "w"], ["y"])], X, ["y"],
                 [tensor("w", "f32", [4, 1], external=keys)])


def group(tokens, past, **attributes):
    """GroupQueryAttention with 7 keys, whose caches keep their size."""
    cache = ("f32", [1, 1, past or 0, 8])
    inputs = {"q": ("f32", [1, 1, 8]), "k": ("f32", [1, tokens, 8]), "n": ("i32", [1])}
    names = ["", ""] if past is None else ["pk", "pv"]
    inputs.update({} if past is None else {"pk": cache, "pv": cache})
    return model([node("GroupQueryAttention", ["q", "k", "k", *names, "n", "t"],
                       ["y", "nk", "nv"], "com.microsoft", num_heads=1, kv_num_heads=1,
                       **attributes)], inputs,
                 {"y": ("f32", [1, 1, 8]), "nk": cache, "nv": cache},
                 [tensor("t", "i32", [1], [7])])


def codes(scales=4, kind="f32", b="u8", extra=(), names=(), **attributes):
    """MatMulNBits of 32 x 4."""
    keys = {"K": 32, "N": 4, "block_size": 32, **attributes}
    return model([node("MatMulNBits", ["a", "b", "s", *names], ["y"], "com.microsoft",
                       **keys)], {"a": ("f32", [1, 32]), **dict(extra)}, ["y"],
                 [tensor("b", b, [4, 1, 16], raw=bytes(64)),
                  tensor("s", kind, [scales], raw=bytes(scales * (4 if kind == "f32"
                                                                  else 2)))])


def rows(bits=4, **attributes):
    """GatherBlockQuantized of 4 x 32."""
    return model([node("GatherBlockQuantized", ["b", "i", "s"], ["y"], "com.microsoft",
                       bits=bits, **attributes)], {"i": ("i64", [2])}, ["y"],
                 [tensor("b", "u8", [4, 16], raw=bytes(64)),
                  tensor("s", "f32", [4, 1], [1.0] * 4)])


BRANCH = {"nodes": [node("Neg", ["x"], ["u"])], "inputs": {}, "outputs": ["u"]}
YES = tensor("yes", "bool", [], [True])


def choose(then, other=None, outputs=("y",), extra=()):
    """If with a condition that is true."""
    return model([node("If", ["yes"], outputs, then_branch=then,
                       else_branch=other or BRANCH), *extra], X, ["y"], [YES])


def nest(depth):
    branch = BRANCH
    for _ in range(depth):
        branch = {"nodes": [node("If", ["yes"], ["u"], then_branch=branch,
                                 else_branch=BRANCH)], "inputs": {}, "outputs": ["u"]}
    return branch


NBITS, ROWS = "com.microsoft.MatMulNBits 'y': ", "com.microsoft.GatherBlockQuantized 'y': "
CASES = {
    # The bytes.
    "truncated": (good[:-9], "expected an ONNX model: the file is damaged"),
    "text": (b"func.func @f() { return }\n", "expected an ONNX model"),
    "empty": (b"", "expected an ONNX model, found no graph"),
    # Types of the graph.
    "string": (model([ADD], {"x": ("string", [1])}, ["y"]),
               "input 'x': element type string is not supported"),
    "negative": (model([ADD], {"x": ("f32", [-3])}, ["y"]),
                 "input 'x': size -3 is negative"),
    "rank": (model([ADD], {"x": ("f32", [1] * 17)}, ["y"]),
             "input 'x': it has more than 16 dimensions"),
    "rank of a weight": (
        model([node("Add", ["x", "w"], ["y"])], X, ["y"],
              [tensor("w", "f32", [1] * 17, [0.0])]),
        "tensor 'w': it has more than 16 dimensions"),
    "twice": (model([ADD, ADD], X, ["y"]),
              "Add 'sum': a second node computes 'y'"),
    "order": (model([node("Neg", ["y"], ["z"]), ADD], X, ["z"]),
              "Neg 'z': no earlier node computes input 'y'"),
    "output": (model([ADD], X, ["q"]), "no node computes output 'q'"),
    "output type": (model([ADD], X, {"y": ("f16", ["n", 4])}),
                    "output 'y' is declared as 'f16', but its elements are of type 'f32'"),
    "no-output": (model([ADD], X, []), "the graph has no outputs"),
    "filter": (model([node("MultiHeadAttention", ["x", "x", "x"], ["y"], "com.microsoft",
                           num_heads=1, mask_filter_value=-2.0)],
                     {"x": ("f32", [1, 2, 8])}, ["y"]),
               "'mask_filter_value' of -2.000000e+00 is not supported, expected at most -1000"),
    # Constants.
    "short": (model([], X, ["w"], [tensor("w", "f32", [4], raw=bytes(15))]),
              "tensor 'w': expected 16 bytes, found 15"),
    "huge": (model([], X, ["w"],
                   [tensor("w", "f32", [1 << 31, 1 << 31, 4], raw=b"")]),
             "tensor 'w': it is larger than 8 GiB"),
    "size": (model([], X, ["w"], [tensor("w", "f32", [-1], raw=b"")]),
             "tensor 'w': size -1 is negative"),
    "type": (model([], X, ["w"], [tensor("w", "u64", [1], raw=bytes(8))]),
             "tensor 'w': element type uint64 is not supported"),
    "code-input": (model([ADD], {"x": ("u16", [1])}, ["y"]),
                   "input 'x': element type uint16 is not supported"),
    "byte-input": (model([ADD], {"x": ("u8", [1])}, ["y"]),
                   "Add 'sum': input 0 has elements of type 'ui8', which this operator does not"),
    "joined-codes": (model([node("Concat", ["x", "w"], ["y"], axis=0)], {"x": ("u8", [1])},
                           ["y"], [tensor("w", "i8", [1], raw=b"0")]),
                     "Concat 'y': the inputs differ in rank or element type"),
    "cast-codes": (model([node("Cast", ["x"], ["y"], to=4)], {"x": ("u8", [1])}, ["y"]),
                   "Cast 'y': conversions to 'ui16' are not supported"),
    "code-output": (model([], X, ["w"], [tensor("w", "u16", [1], raw=b"00")]),
                    "output 'w' has elements of type 'ui16', which is not supported"),
    "code-operator": (
        model([node("Identity", ["w"], ["v"]), node("Add", ["v", "v"], ["y"])], X, ["y"],
              [tensor("w", "u8", [1], raw=b"0")]),
        "Add 'y': input 0 has elements of type 'ui8', which this operator does not"),
    "halves": (model([], X, ["w"], [tensor("w", "i4", [5], raw=b"00")]),
               "tensor 'w': expected 3 bytes, found 2"),
    # Branches.
    "if-data": (model([node("If", ["c"], ["y"], then_branch=BRANCH, else_branch=BRANCH)],
                      {"x": ("f32", [4]), "c": ("bool", [])}, ["y"]),
                "If 'y': the condition depends on data"),
    "if-sizes": (
        model([node("Shape", ["x"], ["n"]), node("Less", ["n", "two"], ["c"]),
               node("If", ["c"], ["y"], then_branch=BRANCH, else_branch=BRANCH)],
              {"x": ("f32", ["n"])}, ["y"], [tensor("two", "i64", [1], [2])]),
        "If 'y': branches need a condition that follows from constants, unless both are "
        "constants: found Neg"),
    "if-branch": (model([node("If", ["x"], ["y"], then_branch=BRANCH)],
                        {"x": ("bool", [])}, ["y"]), "If 'y': expected two branches"),
    "if-float": (model([node("If", ["x"], ["y"], then_branch=BRANCH, else_branch=BRANCH)],
                       X, ["y"]), "If 'y': expected a condition of type bool"),
    "if-results": (choose(BRANCH, outputs=["y", "z"]),
                   "If 'y': expected 2 results of each branch, found 1"),
    "if-empty": (choose({}), "If 'y': expected 1 results of each branch, found 0"),
    "if-undefined": (choose({"nodes": [], "inputs": {}, "outputs": ["q"]}),
                     "If 'y': no node of a branch computes 'q'"),
    "if-unknown": (choose({"nodes": [node("Neg", ["q"], ["u"])], "inputs": {},
                           "outputs": ["u"]}),
                   "Neg 'u': no earlier node computes input 'q'"),
    "if-input": (choose({"nodes": [node("Neg", ["q"], ["u"])],
                         "inputs": {"q": ("f32", [4])}, "outputs": ["u"]}),
                 "Neg 'u': no earlier node computes input 'q'"),
    # Names of a branch are not those of the graph around it, and end with it.
    "if-shadow": (choose({"nodes": [node("Neg", ["x"], ["x"])], "inputs": {},
                          "outputs": ["x"]}), "Neg 'x': a second node computes 'x'"),
    "if-shadow-constant": (
        choose({"nodes": [], "inputs": {}, "outputs": ["x"],
                "initializers": [tensor("x", "f32", [4], [0.0] * 4)]}),
        "If 'y': a branch and a graph around it have a tensor 'x'"),
    "if-end": (choose(BRANCH, outputs=["v"], extra=[node("Neg", ["u"], ["y"])]),
               "Neg 'y': no earlier node computes input 'u'"),
    "if-body": (choose(BRANCH, outputs=["v"], extra=[
        node("Neg", ["v"], ["y"], body=BRANCH)]),
        "Neg 'y': attribute 'body' is not supported"),
    "if-attribute": (model([node("If", ["yes"], ["y"], then_branch=BRANCH,
                                 else_branch=BRANCH, body=BRANCH)], X, ["y"], [YES]),
                     "If 'y': attribute 'body' is not supported"),
    "if-two": (model([node("If", ["yes", "x"], ["y"], then_branch=BRANCH,
                           else_branch=BRANCH)], X, ["y"], [YES]),
               "If 'y': expected 1 inputs, found 2"),
    "loop": (model([node("Loop", ["x"], ["y"], name="steps", body=BRANCH)], X, ["y"]),
             "Loop 'steps': this operator is not supported"),
    "deep": (choose(nest(8)), "If 'u': expected two branches, nested at most 8 deep"),
    "deeper": (choose(nest(100)), "If 'u': expected two branches, nested at most 8 deep"),
    "deep-loop": (model([node("Loop", ["x"], ["y"], name="steps", body=nest(9))], X,
                        ["y"]), "Loop 'steps': this operator is not supported"),
    # Codes.
    "bits": (codes(bits=3), NBITS + "'bits' is 3, expected 2, 4 or 8"),
    "block": (codes(block_size=24), NBITS + "'block_size' is 24, expected a power of two"),
    "level": (codes(accuracy_level=5), NBITS + "'accuracy_level' is 5, expected 0 to 4"),
    "prepacked": (codes(weight_prepacked=1),
                  NBITS + "attribute 'weight_prepacked' is not supported"),
    "depth": (codes(K=64), NBITS + "expected 128 bytes of weights, found 64"),
    "scales": (codes(3), NBITS + "expected 4 scales, found 3"),
    "scale-type": (codes(kind="f16"), NBITS + "the scales have another type"),
    "weight-type": (codes(b="i8"), NBITS + "expected weights of type uint8, found 'i8'"),
    "order-of-groups": (codes(names=["", "g"], extra={"g": ("i32", [32])}),
                        NBITS + "input g_idx is not supported"),
    "zeros": (codes(names=["z"], extra={"z": ("f32", [4])}),
              NBITS + "the zero points must be constant"),
    "zero-type": (codes(names=["z"], extra={"z": ("i8", [4])}),
                  NBITS + "zero points have type 'i8', expected uint8"),
    "bias": (codes(names=["", "", "z"], extra={"z": ("f32", [3])}),
             NBITS + "expected a bias of 4 elements"),
    "rows-axis": (rows(gather_axis=1, quantize_axis=0, block_size=16),
                  ROWS + "only rows of matrices are supported"),
    "rows-blocks": (rows(block_size=64), ROWS + "rows of 32 codes are no multiple"),
    "rows-scales": (rows(block_size=16), ROWS + "expected 2 scales for each row"),
    # External data is inside of the model's folder.
    "parent": (external(location="../outside/data"), "outside of the model's folder"),
    "absolute": (external(location=os.path.abspath("outside/data")),
                 "expected a path relative to the model's folder"),
    "link": (external(location="link"), "outside of the model's folder"),
    "missing": (external(location="nowhere"), "cannot read external data 'nowhere'"),
    "folder": (external(location="."), "cannot read external data '.'"),
    "offset": (external(location="data", offset="17"),
               "external data begins beyond the end of 'data', which has 16 bytes"),
    "length": (external(location="data", offset="8", length="9"),
               "external data ends beyond the end of 'data', which has 16 bytes"),
    "number": (external(location="data", length="many"),
               "length of external data is not a number"),
    "few": (external(location="data", length="12"),
            "tensor 'w': expected 16 bytes, found 12"),
    **{f"offset{number}": (external(location="data", offset=text), OFFSET)
       for number, text in enumerate(["-1", "-0", "+1", " 1", "0x1", "1e1", str(2**64),
                                      "9" * 1000, "1\0"])},
    **{f"length{number}": (external(location="data", length=text),
                           "length of external data is not a number")
       for number, text in enumerate(["-16", str(2**64), "16.0"])},
    "offset-huge": (external(location="data", offset=str(2**64 - 1)), "begins beyond the end"),
    "offset-half": (external(location="data", offset=str(2**63)), "begins beyond the end"),
    "length-huge": (external(location="data", offset="8", length=str(2**64 - 8)),
                    "ends beyond the end"),
    "unnamed": (external(location=""), "cannot read external data '': expected a file name"),
    "nul": (external(location="data\0x"), "expected a file name"),
    "backslash": (external(location="..\\outside\\data"),
                  "expected a path relative to the model's folder"),
    "back": (external(location="x/../data"), "outside of the model's folder"),
    "behind": (external(location="data/x"), "cannot read external data 'data/x'"),
    "long": (external(location="x" * 5000), "cannot read external data 'xxx"),
    "pipe": (external(location="pipe"), "it is not a regular file"),
    "link-loop": (external(location="loop"), "cannot read external data 'loop'"),
    "device": (external(location="zero"), "outside of the model's folder"),
    "folder-link": (external(location="up/outside/data"), "outside of the model's folder"),
    "no-data": (external(location="none"), "expected 16 bytes, found 0"),
    # Nodes.
    "operator": (model([node("NonZero", ["x"], ["y"], name="some")], X, ["y"]),
                 "NonZero 'some': this operator is not supported"),
    "domain": (model([node("Foo", ["x"], ["y"], "my.domain")], X, ["y"]),
               "my.domain.Foo 'y': operators of the domain 'my.domain' are not "
               "supported"),
    "function": (model([node("F", ["x"], ["y"], "local")], X, ["y"]) +
                 field(25, field(1, "F")),
                 "local.F 'y': functions of the model are not supported"),
    "inputs": (model([node("Add", ["x"], ["y"])], X, ["y"]),
               "Add 'y': expected 2 inputs, found 1"),
    "attribute": (model([node("Add", ["x", "x"], ["y"], axis=1)], X, ["y"]),
                  "Add 'y': attribute 'axis' is not supported"),
    "graph": (model([node("Neg", ["x"], ["y"], body={})], X, ["y"]),
              "Neg 'y': attribute 'body' is not supported"),
    "shapes": (model([node("Add", ["x", "w"], ["y"])], X, ["y"], weight),
               "Add 'y': the shapes of the inputs differ in dimension 1"),
    "axis": (model([node("Softmax", ["x"], ["y"], axis=2)], X, ["y"]),
             "Softmax 'y': axis 2 is out of range for rank 2"),
    "permutation": (model([node("Transpose", ["x"], ["y"], perm=[0, 0])], X, ["y"]),
                    "Transpose 'y': 'perm' is no permutation of 2 dimensions"),
    "data": (model([node("Reshape", ["x", "s"], ["y"])],
                   {**X, "s": ("i64", [2])}, ["y"]),
             "Reshape 'y': input 1 depends on data"),
    "elements": (model([node("Reshape", ["w", "s"], ["y"])], X, ["y"],
                       weight + [tensor("s", "i64", [2], [3, -1])]),
                 "Reshape 'y': the number of elements is no multiple"),
    "squeeze": (model([node("Squeeze", ["x"], ["y"])], X, ["y"]),
                "Squeeze 'y': without axes, the rank of the result depends on the size "
                "of dimension 0"),
    "expand": (model([node("Expand", ["w", "s"], ["y"])], X, ["y"],
                     weight + [tensor("s", "i64", [2], [4, 3])]),
               "Expand 'y': dimension 1 of the input has another size"),
    "index": (model([node("Gather", ["w", "i"], ["y"])], X, ["y"],
                    weight + [tensor("i", "i64", [2], [-4, 4])]),
              "Gather 'y': an index is out of range: 4 for size 4"),
    "pair": (model([node("GatherND", ["w", "i"], ["y"])], X, ["y"],
                   weight + [tensor("i", "i64", [2, 2], [3, 1, 1, -3])]),
             "GatherND 'y': an index is out of range: -3 for size 2"),
    "scores": (model([node("Attention", ["q", "q", "q"], ["y", "", "", "s"])],
                     {"q": ("f32", [1, 2, 3, 8])}, ["y", "s"]),
               "Attention 'y': output qk_matmul_output is not supported"),
    "heads": (model([node("Attention", ["q", "k", "k"], ["y"])],
                    {"q": ("f32", [1, 3, 3, 8]), "k": ("f32", [1, 2, 3, 8])}, ["y"]),
              "Attention 'y': the number of query heads, 3, is no multiple"),
    "no-keys": (group(0, past=None), "expected past keys, as there are no new ones"),
    "full": (group(1, past=6), "total_sequence_length is larger than the caches"),
    "window": (group(1, past=8, local_window_size=0),
               "'local_window_size' must be -1 or positive"),
    "overflow": (model([node("Tile", ["x", "r"], ["y"])], {"x": ("f32", [1 << 40])},
                       ["y"], [tensor("r", "i64", [1], [1 << 40])]),
                 "Tile 'y': a size of the result is negative or too large"),
    # The number whose negation overflows.
    "lowest-step": (model([node("Slice", ["x", "s", "e", "a", "t"], ["y"])], X, ["y"],
                          [tensor(name, "i64", [1], [value]) for name, value in
                           (("s", -1), ("e", -9), ("a", 0), ("t", -1 << 63))]),
                    "Slice 'y': a negative step needs constant bounds"),
    "lowest-pad": (model([node("Pad", ["x", "p"], ["y"])], X, ["y"],
                         [tensor("p", "i64", [4], [0, -1 << 63, 0, 0])]),
                   "Pad 'y': a size of the result is negative"),
    "range": (model([node("Range", ["s", "e", "t"], ["y"])], X, ["y"],
                    [tensor(name, "i64", [], [value]) for name, value in
                     (("s", -1 << 63), ("e", (1 << 63) - 1), ("t", 1))]),
              "Range 'y': the number of elements overflows"),
    # Opsets, and operators that they do not have or that meant something else.
    "opset-0": (model([ADD], X, ["y"], opset=0),
                "opset 0 is not known: expected an opset from 1 to 28"),
    "opset-negative": (model([ADD], X, ["y"], opset=-7), "opset -7 is not known"),
    "opset-29": (model([ADD], X, ["y"], opset=29), "opset 29 is not known"),
    "opset-microsoft": (model([ADD], X, ["y"]) +
                        field(8, field(1, "com.microsoft") + field(2, 2)),
                        "opset 2 of com.microsoft is not known: expected 1"),
    "opset-gelu": (model([node("Gelu", ["x"], ["y"])], X, ["y"], opset=19),
                   "Gelu 'y': this operator is supported from opset 20, and the model "
                   "has opset 19"),
    "opset-cast": (model([node("Cast", ["x"], ["y"], to="INT32")], X, ["y"], opset=5),
                   "Cast 'y': this operator is supported from opset 6"),
    "opset-add": (model([node("Add", ["x", "b"], ["y"])], X, ["y"],
                        [tensor("b", "f32", [4], [0.0] * 4)], opset=6),
                  "Add 'y': before opset 7, only inputs of one shape are supported"),
    "opset-max": (model([node("Max", ["x", "b"], ["y"])], X, ["y"],
                        [tensor("b", "f32", [4], [0.0] * 4)], opset=7),
                  "Max 'y': before opset 8, only inputs of one shape are supported"),
    "opset-mod": (model([node("Mod", ["x", "x"], ["y"])], X, ["y"], opset=27),
                  "Mod 'y': floats require 'fmod' before opset 28"),
    "opset-concat": (model([node("Concat", ["x", "x"], ["y"])], X, ["y"]),
                     "Concat 'y': the axis is missing"),
    "opset-split": (model([node("Split", ["w"], ["y", "z"], axis=0)], X, ["y"],
                          [tensor("w", "f32", [3], [0.0] * 3)], opset=13),
                    "Split 'y': the sizes of the outputs do not add up"),
    "slope": (model([node("PRelu", ["b", "w"], ["y"])], X, ["y"],
                    weight + [tensor("b", "f32", [2], [0.0] * 2)]),
              "PRelu 'y': an input does not broadcast to the shape of the first one"),
    "summand": (model([node("Gemm", ["a", "w", "c"], ["y"])], X, ["y"],
                      weight + [tensor("a", "f32", [1, 4], [0.0] * 4),
                                tensor("c", "f32", [3, 2], [0.0] * 6)]),
                "Gemm 'y': an input does not broadcast to the shape of the first one"),
    "extremum": (model([node("ArgMax", ["w"], ["y"])], X, ["y"],
                       [tensor("w", "f32", [0], raw=b"")]),
                 "ArgMax 'y': no elements along the axis"),
}

wrong = 0
for name, (data, message) in CASES.items():
    path = f"in/{name}.onnx"
    with open(path, "wb") as file:
        file.write(data)
    result = subprocess.run([sys.argv[1], path, "--emit=posenc", "-o", "x.mlir"],
                            capture_output=True, text=True, timeout=60)
    expected = f"{path}: error: "
    if result.returncode != 1 or not result.stderr.startswith(expected) or \
            message not in result.stderr or result.stderr.count("error:") != 1:
        wrong += 1
        print(f"{name}: exit code {result.returncode}, {result.stderr!r}")

# A model that is a link, as in the cache of a hub: its external data is in the folder
# of the link or of the file, or is a link from the former to the latter.
with open("in/good.onnx", "wb") as file:
    file.write(good)
os.makedirs("hub/blobs", exist_ok=True)
with open("hub/blobs/model", "wb") as file:
    file.write(external(location="model.data"))
for number, data in enumerate(["", "../blobs/data", "../../outside/data"]):
    folder = f"hub/{number}"
    os.makedirs(folder, exist_ok=True)
    for link, target in (("model.onnx", "../blobs/model"), ("model.data", data)):
        if target and not os.path.islink(f"{folder}/{link}"):
            os.symlink(target, f"{folder}/{link}")
for name in ("model.data", "data"):
    with open(f"hub/blobs/{name}", "wb") as file:
        file.write(bytes(16))
# Tensors may overlap and have any alignment.
with open("in/overlap.onnx", "wb") as file:
    file.write(model([node("MatMul", ["x", "v"], ["z"]), node("MatMul", ["z", "w"], ["y"])], X,
                     ["y"], [tensor(name, "f32", shape, external={
                         "location": "data", "offset": offset, "length": length})
                         for name, shape, offset, length in (
                             ("v", [4, 1], "0", "16"), ("w", [1, 2], "3", "8"))]))
for path, code in (("in/good", 0), ("in/overlap", 0), ("hub/0/model", 0), ("hub/1/model", 0),
                   ("hub/2/model", 1)):
    result = subprocess.run([sys.argv[1], f"{path}.onnx", "--emit=posenc", "-o",
                             "x.mlir"], capture_output=True, text=True)
    if result.returncode != code:
        wrong += 1
        print(f"{path}: exit code {result.returncode}, {result.stderr!r}")
print(f"{len(CASES)} models, {wrong} wrong")
