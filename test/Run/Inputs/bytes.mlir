//===- bytes.mlir - elements without a sign -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @f(%x: tensor<?xi8> {posenc.unsigned}) -> (tensor<?xi8> {posenc.unsigned}) {
  return %x : tensor<?xi8>
}
