//===- dots.mlir - bf16 dot products against the reference ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Sizes around a pair, 64 elements of the sum, a tile and a block.
// DEFINE: %{m} = 1
// DEFINE: %{k} = 1
// DEFINE: %{n} = 1
// DEFINE: %{product} = posenc-run %s --function=product --reference \
// DEFINE:   --input=%{m}x%{k}xbf16=random --input=%{k}x%{n}xbf16=random:seed=2 \
// DEFINE:   --input=%{m}x%{n}xf32=random:seed=3
// DEFINE: %{transposed} = posenc-run %s --function=transposed --reference \
// DEFINE:   --input=%{k}x%{m}xbf16=random --input=%{n}x%{k}xbf16=random:seed=2 \
// DEFINE:   --input=%{m}x%{n}xbf16=random:seed=3
// RUN: %{product} && %{transposed}
// REDEFINE: %{m} = 37
// REDEFINE: %{k} = 65
// REDEFINE: %{n} = 41
// RUN: %{product} && %{transposed}
// REDEFINE: %{m} = 9
// REDEFINE: %{k} = 96
// REDEFINE: %{n} = 33
// RUN: %{product} && %{transposed}
// REDEFINE: %{k} = 31
// RUN: %{product} && %{transposed}
// REDEFINE: %{m} = 130
// REDEFINE: %{k} = 1157
// REDEFINE: %{n} = 131
// RUN: %{product} && %{transposed}
// RUN: posenc-run %s --function=batch --reference \
// RUN:   --input=3x17x75xbf16=random --input=3x75x70xbf16=random:seed=2

// Parts of tiles of a known size, also without optimization: with AMX, LLVM's backend
// would then load configurations that are a fault.
// RUN: posenc-run %s --function=parts --opt-level=0 --reference \
// RUN:   --input=37x192xbf16=random --input=192x96xbf16=random:seed=2 --input=37x96xf32=random

func.func @parts(%a: tensor<37x192xbf16>, %b: tensor<192x96xbf16>, %c: tensor<37x96xf32>) -> tensor<37x96xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<37x192xbf16>, tensor<192x96xbf16>) outs(%c : tensor<37x96xf32>) -> tensor<37x96xf32>
  return %0 : tensor<37x96xf32>
}

func.func @product(%a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

func.func @transposed(%a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %c: tensor<?x?xbf16>) -> tensor<?x?xbf16> {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%c : tensor<?x?xbf16>) {
  ^bb0(%x: bf16, %y: bf16, %z: bf16):
    %p = arith.mulf %x, %y : bf16
    %s = arith.addf %z, %p : bf16
    linalg.yield %s : bf16
  } -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}

func.func @batch(%a: tensor<3x17x75xbf16>, %b: tensor<3x75x70xbf16>) -> tensor<3x17x70xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x17x70xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x17x70xf32>) -> tensor<3x17x70xf32>
  %0 = linalg.batch_matmul ins(%a, %b : tensor<3x17x75xbf16>, tensor<3x75x70xbf16>) outs(%init : tensor<3x17x70xf32>) -> tensor<3x17x70xf32>
  return %0 : tensor<3x17x70xf32>
}
