#!/usr/bin/env python3
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes cached.onnx: operators of ONNX that rotate by constant caches of cos and sin.

    cached-tables.py FOLDER-OF-onnx_model.py
"""

import importlib.util
import math
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

from onnx_model import node, tensor, write  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "tables", pathlib.Path(__file__).with_name("constant-tables.py"))
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)

angles = tables.angles(64)
caches = [tensor(name, "f32", [64, 8], [number for row in tables.table(function, angles)
                                        for number in row])
          for name, function in (("cos", math.cos), ("sin", math.sin))]
write("cached.onnx", [
    node("RotaryEmbedding", ["q", "cos", "sin", "p"], ["rq"], num_heads=4),
    node("RotaryEmbedding", ["k", "p", "cos", "sin"], ["rk"], "com.microsoft",
         num_heads=2),
    node("Attention", ["rq", "rk", "v"], ["o"], q_num_heads=4, kv_num_heads=2,
         is_causal=1)],
      {"q": ("f32", ["b", "s", 64]), "k": ("f32", ["b", "s", 32]),
       "v": ("f32", ["b", "s", 32]), "p": ("i64", ["b", "s"])}, ["o"], caches)
