# ===- flat.py - MLIR with many brackets that do not nest ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

print("// " + "((((" * 1000)
print('#a = "' + "[[[[" * 1000 + '\\""')
print("#b = [" + "[-1], " * 1000 + "[1]]")
print("#c = affine_set<(i) : (" + "i >= 0, " * 400 + "i >= 0)>")
for number in range(400):
    print(f"!f{number} = (i32) -> tensor<4xi32>")
print("module {}")
