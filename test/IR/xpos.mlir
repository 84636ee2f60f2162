//===- xpos.mlir - factors of positions -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s | posenc-opt | FileCheck %s
// RUN: posenc-opt %s --canonicalize | FileCheck %s --check-prefix=FOLDS
// RUN: posenc-opt %s --posenc-fuse-ropes | FileCheck %s --check-prefix=FUSED

// CHECK: scale <base = 5.120000e+02, gamma = 4.000000e-01, origin = -3, reciprocal = true> ins(
// CHECK: scale <base = 5.120000e+02, gamma = 4.000000e-01> ins(

// Ropes with a scale are not folded, and those of different scales not merged.
// FOLDS-COUNT-4: posenc.rope
// FUSED-COUNT-4: posenc.rope
func.func @f(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %a = posenc.rope half #posenc.frequencies<dim = 8>
    scale #posenc.xpos<base = 512.0, gamma = 0.4, origin = -3, reciprocal = true>
    ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  %b = posenc.rope half #posenc.frequencies<dim = 8>
    scale #posenc.xpos<base = 512.0, gamma = 0.4>
    ins(%a : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  %zero = arith.constant dense<0> : tensor<3xi64>
  %slice = tensor.extract_slice %x[0, 0] [3, 8] [1, 1] : tensor<?x8xf32> to tensor<3x8xf32>
  %c = posenc.rope half #posenc.frequencies<dim = 8> scale #posenc.xpos<base = 512.0, gamma = 0.4, origin = 1>
    ins(%slice : tensor<3x8xf32>) positions(%zero : tensor<3xi64>) dims = [0] outs(%slice : tensor<3x8xf32>)
  %d = tensor.cast %c : tensor<3x8xf32> to tensor<?x8xf32>
  %e = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8xf32>)
  return %b, %d, %e : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
