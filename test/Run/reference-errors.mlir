//===- reference-errors.mlir - errors of the reference --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{exits} = %python %posenc_src/test/Inputs/exits.py
// DEFINE: %{run} = posenc-run %s --reference

// RUN: %{exits} 1 %{run} --function=unknown --input=4xf32=1 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: reference-errors.mlir:[[#@LINE+2]]:8: error: the reference does not evaluate 'arith.addf'
func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A bufferized module has no tensors to evaluate.
// RUN: posenc-compile %S/Inputs/rope.mlir --emit=vector -o %t.mlir
// RUN: posenc-run %t.mlir --input=1x4x8xbf16=1 --input=1xi64=1
// RUN: %{exits} 1 posenc-run %t.mlir --input=1x4x8xbf16=1 --input=1xi64=1 \
// RUN:   --reference 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: error: the reference supports only tensors and numbers, got 'memref<

// After an error, no results are written.
// RUN: rm -f %t.npy
// RUN: %{exits} 1 %{run} --function=unknown --input=4xf32=1 --output=@%t.npy
// RUN: not ls %t.npy
