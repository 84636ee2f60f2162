//===- shared-inits.mlir - results that begin with one tensor -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Both sums begin with the same tensor of zeros. The second one reads the first,
// so the destination of the first must not hold the second one meanwhile.

// RUN: posenc-run %s --function=suffix_sums --input=17xi32=iota --reference | FileCheck %s
// RUN: posenc-run %s --function=twice --input=17xi32=iota --reference | FileCheck %s
// RUN: posenc-compile %s -o %t.so
// RUN: posenc-run %t.so --function=twice --input=5xi32=iota --output=@%t.0.npy --output=@%t.1.npy
// RUN: cmp %t.0.npy %t.1.npy

// CHECK: result #0: max error 0.00 ulp
// CHECK: result #1: max error 0.00 ulp

#in = affine_map<(d0, d1) -> (d1)>
#out = affine_map<(d0, d1) -> (d0)>

func.func @suffix_sums(%x: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %empty = tensor.empty(%n) : tensor<?xi32>
  %init = linalg.fill ins(%zero : i32) outs(%empty : tensor<?xi32>) -> tensor<?xi32>
  %first = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?xi32>) outs(%init : tensor<?xi32>) {
  ^bb0(%element: i32, %sum: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %follows = arith.cmpi sge, %j, %i : index
    %added = arith.select %follows, %element, %zero : i32
    %next = arith.addi %sum, %added : i32
    linalg.yield %next : i32
  } -> tensor<?xi32>
  %second = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%first : tensor<?xi32>) outs(%init : tensor<?xi32>) {
  ^bb0(%element: i32, %sum: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %follows = arith.cmpi sge, %j, %i : index
    %added = arith.select %follows, %element, %zero : i32
    %next = arith.addi %sum, %added : i32
    linalg.yield %next : i32
  } -> tensor<?xi32>
  return %first, %second : tensor<?xi32>, tensor<?xi32>
}

// One value is two results.
func.func @twice(%x: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %empty = tensor.empty(%n) : tensor<?xi32>
  %sum = linalg.add ins(%x, %x : tensor<?xi32>, tensor<?xi32>) outs(%empty : tensor<?xi32>) -> tensor<?xi32>
  return %sum, %sum : tensor<?xi32>, tensor<?xi32>
}
