//===- pages-without-keys.mlir - a page table without keys ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @pages(%t: memref<1x4xi32, strided<[?, 1]>>, %n: memref<1xi64>, %y: memref<4xf32>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"t", tensor<1x4xi32>, []>, #posenc.arg<"n", tensor<1xi64>, []>], outputs = [#posenc.arg<"y", tensor<4xf32>, []>], sizes = [], in_place = [-1], bounds = [#posenc.bound<kind = lengths, input = 1, limit = [16]>, #posenc.bound<kind = pages, input = 0, limit = [8], each = [0], lengths = 1>]>} {
  return
}
