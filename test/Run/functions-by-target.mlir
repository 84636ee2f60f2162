//===- functions-by-target.mlir - equal bits with other instructions ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// AVX-512 has an instruction that scales by powers of two. Math functions that use
// it give the same bits as with AVX2 for numbers of all magnitudes, subnormal
// results, zeros, infinities and NaNs.

// REQUIRES: avx512
// RUN: rm -rf %t && mkdir %t
// RUN: posenc-compile %s -o %t/new.so --target=host
// RUN: posenc-compile %s -o %t/old.so --target=x86-64-v3
// RUN: posenc-compile %s -o %t/new.s --target=host
// RUN: FileCheck %s --input-file=%t/new.s
// CHECK-DAG: vscalefps
// CHECK-DAG: vscalefpd
// RUN: posenc-run %t/new.so --function=f32 --input=262144xi32=iota --output=@%t/new32.npy
// RUN: posenc-run %t/old.so --function=f32 --input=262144xi32=iota --output=@%t/old32.npy
// RUN: cmp %t/new32.npy %t/old32.npy
// RUN: posenc-run %t/new.so --function=f64 --input=262144xi64=iota --output=@%t/new64.npy
// RUN: posenc-run %t/old.so --function=f64 --input=262144xi64=iota --output=@%t/old64.npy
// RUN: cmp %t/new64.npy %t/old64.npy

#map = affine_map<(i) -> (i)>

// Every 16,384th f32.
func.func @f32(%n: tensor<?xi32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %n, %c0 : tensor<?xi32>
  %e = tensor.empty(%size) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%n : tensor<?xi32>) outs(%e : tensor<?xf32>) {
  ^bb0(%in: i32, %out: f32):
    %step = arith.constant 16384 : i32
    %bits = arith.muli %in, %step : i32
    %x = arith.bitcast %bits : i32 to f32
    %p = math.exp %x : f32
    %q = math.exp2 %x : f32
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Every 2^46th f64.
func.func @f64(%n: tensor<?xi64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %n, %c0 : tensor<?xi64>
  %e = tensor.empty(%size) : tensor<?xf64>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%n : tensor<?xi64>) outs(%e : tensor<?xf64>) {
  ^bb0(%in: i64, %out: f64):
    %step = arith.constant 70368744177664 : i64
    %bits = arith.muli %in, %step : i64
    %x = arith.bitcast %bits : i64 to f64
    %p = math.exp %x : f64
    %q = math.cosh %x : f64
    %t = math.powf %p, %x : f64
    %u = arith.divf %q, %p : f64
    %s = arith.addf %u, %t : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}
