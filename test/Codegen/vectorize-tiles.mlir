//===- vectorize-tiles.mlir - vectorization of elementwise tiles ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-vectorize-tiles --split-input-file --canonicalize | FileCheck %s

// A cache line is two vectors of 32 bytes; the remainder of a row has shorter
// vectors.
// CHECK-LABEL: func.func @add
// CHECK-SAME: (%[[X:.*]]: memref<4x32xf32>, %[[Y:.*]]: memref<4x32xf32>, %[[ROW:.*]]: index)
// CHECK: %[[X0:.*]] = vector.load %[[X]][%[[ROW]], %c4] : memref<4x32xf32>, vector<8xf32>
// CHECK: %[[Y0:.*]] = vector.load %[[Y]][%[[ROW]], %c0] : memref<4x32xf32>, vector<8xf32>
// CHECK: %[[SUM0:.*]] = arith.addf %[[X0]], %[[Y0]] : vector<8xf32>
// CHECK: vector.store %[[SUM0]], %[[Y]]
// CHECK: vector.load %[[X]][%[[ROW]], %c12] : memref<4x32xf32>, vector<4xf32>
// CHECK: %[[SUM1:.*]] = arith.addf {{.*}} : vector<4xf32>
// CHECK: vector.store %[[SUM1]], %[[Y]]
// CHECK-NOT: linalg.generic

// With non-temporal stores, both vectors of a line are stored together, after
// both are computed.
// CHECK-LABEL: func.func @streamed
// CHECK: vector.load %{{.*}} vector<8xf32>
// CHECK: vector.load %{{.*}} vector<8xf32>
// CHECK: vector.store {{.*}} {alignment = 32 : i64, nontemporal = true}
// CHECK-NEXT: vector.store {{.*}} {alignment = 32 : i64, nontemporal = true}
#id = affine_map<(d0) -> (d0)>
func.func @add(%x: memref<4x32xf32>, %y: memref<4x32xf32>, %row: index) {
  %a = memref.subview %x[%row, 4] [1, 12] [1, 1] : memref<4x32xf32> to memref<12xf32, strided<[1], offset: ?>>
  %b = memref.subview %y[%row, 0] [1, 12] [1, 1] : memref<4x32xf32> to memref<12xf32, strided<[1], offset: ?>>
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : memref<12xf32, strided<[1], offset: ?>>, memref<12xf32, strided<[1], offset: ?>>)
      outs(%b : memref<12xf32, strided<[1], offset: ?>>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

func.func @streamed(%x: memref<4x16xf32>, %y: memref<4x16xf32>, %row: index) {
  %a = memref.subview %x[%row, 0] [1, 16] [1, 1] : memref<4x16xf32> to memref<16xf32, strided<[1], offset: ?>>
  %b = memref.subview %y[%row, 0] [1, 16] [1, 1] : memref<4x16xf32> to memref<16xf32, strided<[1], offset: ?>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<16xf32, strided<[1], offset: ?>>)
      outs(%b : memref<16xf32, strided<[1], offset: ?>>) attrs = {posenc.streamed} {
  ^bb0(%p: f32, %o: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Even and odd elements with the same computation stay interleaved, constants
// included. The sum of the two orders shuffles one vector.
// CHECK-LABEL: func.func @alike
// CHECK: %[[ROW:.*]] = vector.load %{{.*}} : memref<64xf32>, vector<8xf32>
// CHECK-NOT: vector.deinterleave
// CHECK-DAG: %[[SCALED:.*]] = arith.mulf %[[ROW]], %{{.*}} : vector<8xf32>
// CHECK-DAG: %[[OTHER:.*]] = vector.shuffle %[[ROW]], %[[ROW]] [1, 0, 3, 2, 5, 4, 7, 6] : vector<8xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[SCALED]], %[[OTHER]] : vector<8xf32>
// CHECK-NOT: vector.interleave
// CHECK: vector.store %[[SUM]]
#id = affine_map<(d0) -> (d0)>
func.func @alike(%x: memref<64xf32>, %i: index) {
  %c1 = arith.constant 1 : index
  %j = arith.addi %i, %c1 : index
  %a = memref.subview %x[%i] [4] [2] : memref<64xf32> to memref<4xf32, strided<[2], offset: ?>>
  %b = memref.subview %x[%j] [4] [2] : memref<64xf32> to memref<4xf32, strided<[2], offset: ?>>
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : memref<4xf32, strided<[2], offset: ?>>, memref<4xf32, strided<[2], offset: ?>>)
      outs(%a, %b : memref<4xf32, strided<[2], offset: ?>>, memref<4xf32, strided<[2], offset: ?>>) {
  ^bb0(%p: f32, %q: f32, %o0: f32, %o1: f32):
    %c = arith.constant 2.0 : f32
    %s = arith.mulf %p, %c : f32
    %t = arith.mulf %q, %c : f32
    %u = arith.addf %s, %q : f32
    %v = arith.addf %t, %p : f32
    linalg.yield %u, %v : f32, f32
  }
  return
}

// -----

// With different computations, they are deinterleaved and interleaved again.
// CHECK-LABEL: func.func @differently
// CHECK: %[[EVEN:.*]], %[[ODD:.*]] = vector.deinterleave %{{.*}} : vector<8xf32> -> vector<4xf32>
// CHECK: %[[A:.*]] = arith.addf %[[EVEN]], %[[ODD]]
// CHECK: %[[B:.*]] = arith.subf %[[EVEN]], %[[ODD]]
// CHECK: %[[ROW:.*]] = vector.interleave %[[A]], %[[B]]
// CHECK: vector.store %[[ROW]]
#id = affine_map<(d0) -> (d0)>
func.func @differently(%x: memref<64xf32>) {
  %a = memref.subview %x[6] [4] [2] : memref<64xf32> to memref<4xf32, strided<[2], offset: 6>>
  %b = memref.subview %x[7] [4] [2] : memref<64xf32> to memref<4xf32, strided<[2], offset: 7>>
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : memref<4xf32, strided<[2], offset: 6>>, memref<4xf32, strided<[2], offset: 7>>)
      outs(%a, %b : memref<4xf32, strided<[2], offset: 6>>, memref<4xf32, strided<[2], offset: 7>>) {
  ^bb0(%p: f32, %q: f32, %o0: f32, %o1: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.subf %p, %q : f32
    linalg.yield %s, %t : f32, f32
  }
  return
}

// -----

// In a view of single elements, the elements between them are not accessed.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: vector.load
// CHECK-COUNT-2: memref.load
// CHECK: vector.from_elements
// CHECK-NOT: vector.store
// CHECK: memref.store
// CHECK: memref.store
#id = affine_map<(d0) -> (d0)>
func.func @alone(%x: memref<4xf32>) {
  %a = memref.subview %x[1] [2] [2] : memref<4xf32> to memref<2xf32, strided<[2], offset: 1>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : memref<2xf32, strided<[2], offset: 1>>) outs(%a : memref<2xf32, strided<[2], offset: 1>>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// The halves of a word are rounded separately unless no NaN has low bits, which
// could carry into its exponent. That holds for bf16 inputs, not for f32.
// CHECK-LABEL: func.func @words
// CHECK: vector.bitcast %{{.*}} : vector<8xbf16> to vector<4xi32>
// CHECK-NOT: arith.truncf
// CHECK: arith.maxui
// CHECK-LABEL: func.func @any_nan
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// CHECK-NOT: arith.maxui
#id = affine_map<(d0) -> (d0)>
func.func @words(%x: memref<8xbf16>) {
  %a = memref.subview %x[0] [4] [2] : memref<8xbf16> to memref<4xbf16, strided<[2]>>
  %b = memref.subview %x[1] [4] [2] : memref<8xbf16> to memref<4xbf16, strided<[2], offset: 1>>
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : memref<4xbf16, strided<[2]>>, memref<4xbf16, strided<[2], offset: 1>>)
      outs(%a, %b : memref<4xbf16, strided<[2]>>, memref<4xbf16, strided<[2], offset: 1>>) {
  ^bb0(%p: bf16, %q: bf16, %o0: bf16, %o1: bf16):
    %e = arith.extf %p : bf16 to f32
    %f = arith.extf %q : bf16 to f32
    %s = arith.addf %e, %f : f32
    %t = arith.mulf %e, %f : f32
    %u = arith.truncf %s : f32 to bf16
    %v = arith.truncf %t : f32 to bf16
    linalg.yield %u, %v : bf16, bf16
  }
  return
}
func.func @any_nan(%x: memref<8xbf16>, %y: memref<4xf32>) {
  %a = memref.subview %x[0] [4] [2] : memref<8xbf16> to memref<4xbf16, strided<[2]>>
  %b = memref.subview %x[1] [4] [2] : memref<8xbf16> to memref<4xbf16, strided<[2], offset: 1>>
  %c = memref.subview %y[0] [4] [1] : memref<4xf32> to memref<4xf32, strided<[1]>>
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%c : memref<4xf32, strided<[1]>>)
      outs(%a, %b : memref<4xbf16, strided<[2]>>, memref<4xbf16, strided<[2], offset: 1>>) {
  ^bb0(%p: f32, %o0: bf16, %o1: bf16):
    %n = arith.negf %p : f32
    %u = arith.truncf %p : f32 to bf16
    %v = arith.truncf %n : f32 to bf16
    linalg.yield %u, %v : bf16, bf16
  }
  return
}

// -----

// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: linalg.generic
#id = affine_map<(d0) -> (d0)>
#reversed = affine_map<(d0) -> (7 - d0)>
func.func @others(%x: memref<8xf32>, %y: memref<f32>) {
  %a = memref.subview %x[0] [8] [1] : memref<8xf32> to memref<8xf32, strided<[1]>>
  // Not vectorized: elements are stored at other indices.
  linalg.generic {indexing_maps = [#reversed, #id], iterator_types = ["parallel"]}
      ins(%a : memref<8xf32, strided<[1]>>) outs(%a : memref<8xf32, strided<[1]>>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  }
  // Not vectorized: a sum.
  linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%a : memref<8xf32, strided<[1]>>) outs(%y : memref<f32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  }
  return
}
