# ===- many-phases.py - a function of many products --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# many-phases.py COUNT: prints a function that multiplies x by w COUNT times.
# many-phases.py COUNT LIBRARY [WRONG]: calls it with a w that moves columns by one place,
# and runs the tasks of each phase backwards. It expects columns moved by COUNT places, and
# prints the bytes of the workspace and the phases with several tasks. With WRONG, it runs
# only the first task of each phase.

import ctypes
import sys

count = int(sys.argv[1])
COLUMNS, ROWS = 64, 1024
if len(sys.argv) == 2:
    x, w = f"tensor<?x{COLUMNS}xf32>", f"tensor<{COLUMNS}x{COLUMNS}xf32>"
    print(f"func.func @f(%x0: {x}, %w: {w}) -> {x} {{\n"
          "  %c0 = arith.constant 0 : index\n  %zero = arith.constant 0.0 : f32\n"
          f"  %rows = tensor.dim %x0, %c0 : {x}\n  %e = tensor.empty(%rows) : {x}\n"
          f"  %fill = linalg.fill ins(%zero : f32) outs(%e : {x}) -> {x}")
    for i in range(count):
        print(f"  %x{i + 1} = linalg.matmul ins(%x{i}, %w : {x}, {w}) outs(%fill : {x}) -> {x}")
    print(f"  return %x{count} : {x}\n}}")
    sys.exit()

Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
ParallelFor = ctypes.CFUNCTYPE(None, ctypes.c_void_p, Body, ctypes.c_void_p, ctypes.c_int64)
phases = 0


def run_backwards(_, body, argument, tasks):
    global phases
    phases += 1
    for task in range(1) if len(sys.argv) > 3 else reversed(range(tasks)):
        body(argument, task)


library = ctypes.CDLL(sys.argv[2])
run = ParallelFor(run_backwards)
library.x_set_parallel_for(run, None)
library.x_f_workspace.restype = ctypes.c_int64
size = library.x_f_workspace(ctypes.c_int64(ROWS))
workspace = ctypes.create_string_buffer(size + 64)
aligned = ctypes.c_void_p(-(-ctypes.addressof(workspace) // 64) * 64)
x = (ctypes.c_float * (ROWS * COLUMNS))(*range(ROWS * COLUMNS))
w = (ctypes.c_float * (COLUMNS * COLUMNS))()
for i in range(COLUMNS):
    w[i * COLUMNS + (i + 1) % COLUMNS] = 1
result = type(x)()
code = library.x_f(x, w, result, ctypes.c_int64(ROWS), aligned)
assert code == 0, code
for row in range(ROWS):
    wanted = [row * COLUMNS + (j - count) % COLUMNS for j in range(COLUMNS)]
    assert list(result[row * COLUMNS:(row + 1) * COLUMNS]) == wanted, row
print(size, "bytes,", phases, "phases with several tasks")
