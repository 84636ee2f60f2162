//===- bufferize-kernels-invalid.mlir - unsupported layouts of kernels ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-bufferize-kernels --split-input-file --verify-diagnostics

#abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x4xf32>, [0]>], outputs = [], sizes = [-1], in_place = []>

// expected-error @below {{argument #0 is 'memref<?x4xf32>', expected 'memref<?x4xf32, strided<[?, 1]>>'}}
func.func @contiguous(%x: memref<?x4xf32>) attributes {posenc.abi = #abi} {
  return
}

// -----

#abi = #posenc.abi<inputs = [#posenc.arg<"p", tensor<?xi64>, [0]>], outputs = [#posenc.arg<"y", tensor<?x4xf32>, [0]>], sizes = [-1], in_place = [-1]>

// expected-error @below {{argument #1 is 'memref<?x4xf32, strided<[?, ?]>>', expected 'memref<?x4xf32, strided<[?, 1]>>'}}
func.func @transposed(%p: memref<?xi64>, %y: memref<?x4xf32, strided<[?, ?]>>) attributes {posenc.abi = #abi} {
  return
}

// -----

// Control: a supported layout.
#abi = #posenc.abi<inputs = [#posenc.arg<"p", tensor<?xi64>, [0]>], outputs = [#posenc.arg<"y", tensor<?x4xf32>, [0]>], sizes = [-1], in_place = [-1]>

func.func @right(%p: tensor<?xi64>, %y: memref<?x4xf32, strided<[?, 1]>>) attributes {posenc.abi = #abi} {
  return
}
