//===- attention-dots.mlir - attention with bf16 dot products -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-vector='vector-bytes=64 bf16-dots' --posenc-lower-tile-products=bf16-dots --canonicalize --cse --split-input-file | FileCheck %s
// RUN: posenc-opt %s --convert-posenc-attention-to-vector=vector-bytes=64 --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: posenc-opt %s --convert-posenc-attention-to-vector='vector-bytes=32 bf16-dots' --split-input-file | FileCheck %s --check-prefix=OFF
// OFF-NOT: x86vector

// Queries and keys become words of two channels, values words of two keys.
// CHECK-LABEL: func.func @full
// CHECK-SAME: (%[[Q:.*]]: memref<2x?x4x64xbf16>, %[[K:.*]]: memref<2x?x2x64xbf16>, %[[V:.*]]: memref<2x?x2x64xbf16>, %[[O:.*]]: memref<2x?x4x64xbf16>)
// CHECK-DAG: %[[QW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}x32x32xf32>
// CHECK-DAG: %[[KW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<128x48xf32>
// CHECK-DAG: %[[VW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<64x80xf32>
// CHECK-DAG: %[[S:.*]] = memref.alloca() {alignment = 64 : i64} : memref<128x32xf32>
// CHECK: vector.load %[[Q]]
// CHECK: vector.store %{{.*}}, %[[QW]]
// Keys are copied without conversion.
// CHECK: %[[KEY:.*]] = vector.load %[[K]]{{.*}}, vector<32xbf16>
// CHECK-NEXT: %[[WORDS:.*]] = vector.bitcast %[[KEY]] : vector<32xbf16> to vector<16xf32>
// CHECK-NEXT: vector.store %[[WORDS]], %[[KW]]
// CHECK: vector.load %[[V]]
// CHECK: vector.load %[[V]]
// CHECK: vector.store %{{.*}}, %[[VW]]
// Half as many steps as channels, each with 8 keys and two vectors of queries.
// CHECK: scf.for {{.*}} = %c0 to %c32 step %c1
// CHECK-COUNT-8: memref.load %[[KW]]
// CHECK-COUNT-2: vector.load %[[QW]]
// CHECK-NOT: math.fma
// CHECK-COUNT-16: x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
// CHECK-NEXT: scf.yield
// The weights of two keys are rounded to bf16, summed, and packed into words.
// CHECK: scf.for {{.*}} step %c2 iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK: vector.load %[[S]]
// CHECK: vector.load %[[S]]
// CHECK: %[[EVEN:.*]] = arith.andi
// CHECK-NEXT: %[[EVENF:.*]] = arith.bitcast %[[EVEN]]
// CHECK: %[[ODD:.*]] = arith.andi
// CHECK-NEXT: %[[ODDF:.*]] = arith.bitcast %[[ODD]]
// CHECK-NEXT: %[[LOW:.*]] = arith.shrui %[[EVEN]]
// CHECK-NEXT: %[[PAIR:.*]] = arith.ori %[[LOW]], %[[ODD]]
// CHECK-NEXT: %[[PAIRF:.*]] = arith.bitcast %[[PAIR]]
// CHECK: vector.store %[[PAIRF]], %[[S]]
// CHECK-NEXT: %[[MORE:.*]] = arith.addf %[[SUM]], %[[EVENF]]
// CHECK-NEXT: arith.addf %[[MORE]], %[[ODDF]]
// CHECK: memref.load %[[VW]]
// CHECK: vector.load %[[S]]
// CHECK-COUNT-16: x86vector.avx512.dot
// CHECK-NEXT: scf.yield
func.func @full(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x?x4x64xbf16>)
  return
}

// -----

// Rotated keys are rounded to bf16.
// CHECK-LABEL: func.func @rotated
// CHECK: arith.truncf %{{.*}} : vector<32xf32> to vector<32xbf16>
// CHECK: x86vector.avx512.dot
func.func @rotated(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>) {
  posenc.attention key_rotation = <pairing = half, frequencies = <dim = 64, base = 1.0e4>> ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x?x4x64xbf16>)
  return
}

// -----

// The log-sum-exp needs scores of unrounded operands, so bf16 dot products are
// not used.
// CHECK-LABEL: func.func @log_sums
// CHECK-NOT: x86vector
func.func @log_sums(%q: memref<2x?x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>, %l: memref<2x?x4xf32>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o, %l : memref<2x?x4x64xbf16>, memref<2x?x4xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @odd
// CHECK-NOT: x86vector
func.func @odd(%q: memref<2x?x4x63xbf16>, %k: memref<2x?x2x63xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x?x4x64xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x63xbf16>, memref<2x?x2x63xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x?x4x64xbf16>)
  return
}

// CHECK-LABEL: func.func @f16
// CHECK-NOT: x86vector
func.func @f16(%q: memref<2x?x4x64xf16>, %k: memref<2x?x2x64xf16>, %v: memref<2x?x2x64xf16>, %o: memref<2x?x4x64xf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x?x4x64xf16>, memref<2x?x2x64xf16>, memref<2x?x2x64xf16>) outs(%o : memref<2x?x4x64xf16>)
  return
}

// CHECK-LABEL: func.func @one_query
// CHECK-NOT: x86vector
func.func @one_query(%q: memref<2x1x4x64xbf16>, %k: memref<2x?x2x64xbf16>, %v: memref<2x?x2x64xbf16>, %o: memref<2x1x4x64xbf16>) {
  posenc.attention ins(%q, %k, %v : memref<2x1x4x64xbf16>, memref<2x?x2x64xbf16>, memref<2x?x2x64xbf16>) outs(%o : memref<2x1x4x64xbf16>)
  return
}
