# ===- report-onnx.py - a model with hostile names -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""report-onnx.py FOLDER: writes hostile.onnx, with the modules of FOLDER."""

import sys

sys.path.insert(0, sys.argv[1])
from onnx_model import node, write

name = "</pre></td><script>alert(1)</script>&amp;'\"\u202e"
write("hostile.onnx", [node("Attention", [name, "k", "v"], ["o" + name], q_num_heads=4,
                            kv_num_heads=2, is_causal=1)],
      {name: ("f32", ["<b>", "s", 64]), "k": ("f32", ["<b>", "s", 32]),
       "v": ("f32", ["<b>", "s", 32])}, ["o" + name])
