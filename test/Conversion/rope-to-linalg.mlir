//===- rope-to-linalg.mlir - sincos and rotate become generics ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-rope-to-linalg --split-input-file \
// RUN:   --mlir-print-local-scope | FileCheck %s

// The two parts of `round(2^96/(2*pi) * 10000^(-2i/8))`.
// CHECK-LABEL: func.func @sincos(
// CHECK-SAME:    %[[P:.*]]: tensor<?x3xi64>, %[[C:.*]]: tensor<?x3x4xf32>, %[[S:.*]]: tensor<?x3x4xf32>)
// CHECK-NEXT:    %[[HIGH:.*]] = arith.constant dense<[2935890503282001226, 293589050328200122, 29358905032820012, 2935890503282001]> : tensor<4xi64>
// CHECK-NEXT:    %[[LOW:.*]] = arith.constant dense<[2131351028, 2790115480, 1138005007, 972793960]> : tensor<4xi64>
// CHECK-NEXT:    %[[R:.*]]:2 = linalg.generic {indexing_maps = [
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d2)>,
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME:      ins(%[[P]], %[[HIGH]], %[[LOW]] : tensor<?x3xi64>, tensor<4xi64>, tensor<4xi64>)
// CHECK-SAME:      outs(%[[C]], %[[S]] : tensor<?x3x4xf32>, tensor<?x3x4xf32>) {
// CHECK-NEXT:    ^bb0(%[[INP:.*]]: i64, %[[INH:.*]]: i64, %[[INL:.*]]: i64, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NOT:       linalg.index
// CHECK-DAG:       %[[INT:.*]] = arith.shrsi %[[INP]]
// CHECK-DAG:       arith.muli %[[INT]], %[[INH]] : i64
// CHECK-COUNT-2:   arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT:      linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @sincos(%p: tensor<?x3xi64>, %c: tensor<?x3x4xf32>, %s: tensor<?x3x4xf32>) -> (tensor<?x3x4xf32>, tensor<?x3x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<?x3xi64>) outs(%c, %s : tensor<?x3x4xf32>, tensor<?x3x4xf32>)
  return %cos, %sin : tensor<?x3x4xf32>, tensor<?x3x4xf32>
}

// -----

// A frequency of 2*pi is a whole turn. The low part must not be sign-extended.
// CHECK-LABEL: func.func @low_is_unsigned(
// CHECK:         arith.constant dense<[0, 2935890503282001226]> : tensor<2xi64>
// CHECK:         arith.constant dense<[4264650676, 2131351028]> : tensor<2xi64>
func.func @low_is_unsigned(%p: tensor<?xi64>, %c: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 4, base = 1.000000e+04,
      scaling = #posenc.explicit<values = [3.382079e-19, 1.000000e+00]>>
    positions(%p : tensor<?xi64>) outs(%c, %c : tensor<?x2xf32>, tensor<?x2xf32>)
  return %cos, %sin : tensor<?x2xf32>, tensor<?x2xf32>
}

// -----

// The row is added in i64. f16 is rounded from f32.
// CHECK-LABEL: func.func @scalar_i32(
// CHECK-SAME:    %[[P:.*]]: i32
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d1)>
// CHECK-SAME:      ins(%[[P]], %{{.*}}, %{{.*}} : i32, tensor<4xi64>, tensor<4xi64>)
// CHECK-NEXT:    ^bb0(%[[IN:[^:]*]]: i32, %[[H:[^:]*]]: i64,
// CHECK-NEXT:      %[[WIDE:.*]] = arith.extsi %[[IN]] : i32 to i64
// CHECK-NEXT:      %[[ROW:.*]] = linalg.index 0
// CHECK-NEXT:      %[[ROW64:.*]] = arith.index_cast %[[ROW]] : index to i64
// CHECK-NEXT:      %[[SUM:.*]] = arith.addi %[[WIDE]], %[[ROW64]] : i64
// CHECK:           %[[TOP:.*]] = arith.shrsi %[[SUM]]
// CHECK:           arith.muli %[[TOP]], %[[H]]
// CHECK-DAG:       %[[COS:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK-DAG:       %[[SIN:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT:      linalg.yield %[[COS]], %[[SIN]] : f16, f16
func.func @scalar_i32(%p: i32, %c: tensor<?x4xf16>) -> (tensor<?x4xf16>, tensor<?x4xf16>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : i32) outs(%c, %c : tensor<?x4xf16>, tensor<?x4xf16>)
  return %cos, %sin : tensor<?x4xf16>, tensor<?x4xf16>
}

// -----

// CHECK-LABEL: func.func @f64_of_index(
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>
// CHECK:           arith.index_cast %{{.*}} : index to i64
// CHECK-NOT:       f32
// CHECK:           linalg.yield %{{.*}}, %{{.*}} : f64, f64
func.func @f64_of_index(%p: tensor<index>, %c: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, base = 1.000000e+04>
    positions(%p : tensor<index>) outs(%c, %c : tensor<4xf64>, tensor<4xf64>)
  return %cos, %sin : tensor<4xf64>, tensor<4xf64>
}

// -----

// An input per axis, from which that of the pair is selected.
// CHECK-LABEL: func.func @axes(
// CHECK-SAME:    %[[P:.*]]: tensor<3x?xi32>
// CHECK:         %[[P0:.*]] = tensor.extract_slice %[[P]][0, 0] [1, %{{.*}}] [1, 1] : tensor<3x?xi32> to tensor<?xi32>
// CHECK:         %[[P1:.*]] = tensor.extract_slice %[[P]][1, 0] [1, %{{.*}}] [1, 1] : tensor<3x?xi32> to tensor<?xi32>
// CHECK:         %[[P2:.*]] = tensor.extract_slice %[[P]][2, 0] [1, %{{.*}}] [1, 1] : tensor<3x?xi32> to tensor<?xi32>
// CHECK:         %[[AXIS:.*]] = arith.constant dense<[0, 1, 2, 0, 1]> : tensor<5xi32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>,
// CHECK-SAME:      affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>,
// CHECK-SAME:      ins(%[[P0]], %[[P1]], %[[P2]], %{{.*}}, %{{.*}}, %[[AXIS]] :
// CHECK-NEXT:    ^bb0(%[[IN0:.*]]: i32, %[[IN1:.*]]: i32, %[[IN2:.*]]: i32, %{{.*}}: i64, %{{.*}}: i64, %[[A:.*]]: i32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK:           %[[IS1:.*]] = arith.cmpi eq, %[[A]], %c1_i32
// CHECK:           %[[S1:.*]] = arith.select %[[IS1]], %[[IN1]], %[[IN0]]
// CHECK:           %[[IS2:.*]] = arith.cmpi eq, %[[A]], %c2_i32
// CHECK:           %[[S2:.*]] = arith.select %[[IS2]], %[[IN2]], %[[S1]]
// CHECK:           arith.extsi %[[S2]] : i32 to i64
func.func @axes(%p: tensor<3x?xi32>, %c: tensor<?x5xf32>) -> (tensor<?x5xf32>, tensor<?x5xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 10, base = 1.000000e+04> axes #posenc.axes<interleaved, [2, 2, 1]>
    positions(%p : tensor<3x?xi32>) outs(%c, %c : tensor<?x5xf32>, tensor<?x5xf32>)
  return %cos, %sin : tensor<?x5xf32>, tensor<?x5xf32>
}

// -----

// The second product is rounded; the first one is fused with the sum.
// CHECK-LABEL: func.func @half(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8x64xf32>, %[[COS:.*]]: tensor<?x32xf32>, %[[SIN:.*]]: tensor<?x32xf32>, %[[OUT:.*]]: tensor<?x8x64xf32>)
// CHECK:         %[[N:.*]] = tensor.dim %{{.*}}, %c0
// CHECK:         %[[LO:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [%[[N]], 8, 32] [1, 1, 1] : tensor<?x8x64xf32> to tensor<?x8x32xf32>
// CHECK:         %[[HI:.*]] = tensor.extract_slice %[[X]][0, 0, 32] [%[[N]], 8, 32] [1, 1, 1] : tensor<?x8x64xf32> to tensor<?x8x32xf32>
// CHECK-DAG:     %[[E0:.*]] = tensor.empty(%[[N]]) : tensor<?x8x32xf32>
// CHECK-DAG:     %[[E1:.*]] = tensor.empty(%[[N]]) : tensor<?x8x32xf32>
// CHECK:         %[[R:.*]]:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>,
// CHECK-SAME:      affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// CHECK-SAME:      ins(%[[LO]], %[[HI]], %[[COS]], %[[SIN]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[T:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[BT:.*]] = arith.mulf %[[B]], %[[T]] : f32
// CHECK-NEXT:      %[[AT:.*]] = arith.mulf %[[A]], %[[T]] : f32
// CHECK-NEXT:      %[[NBT:.*]] = arith.negf %[[BT]] : f32
// CHECK-NEXT:      %[[R0:.*]] = math.fma %[[A]], %[[C]], %[[NBT]] : f32
// CHECK-NEXT:      %[[R1:.*]] = math.fma %[[B]], %[[C]], %[[AT]] : f32
// CHECK-NEXT:      linalg.yield %[[R0]], %[[R1]] : f32, f32
// CHECK:         %[[I0:.*]] = tensor.insert_slice %[[R]]#0 into %[[OUT]][0, 0, 0] [%[[N]], 8, 32] [1, 1, 1]
// CHECK-NEXT:    %[[I1:.*]] = tensor.insert_slice %[[R]]#1 into %[[I0]][0, 0, 32] [%[[N]], 8, 32] [1, 1, 1]
// CHECK-NEXT:    return %[[I1]]
func.func @half(%x: tensor<?x8x64xf32>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>, %out: tensor<?x8x64xf32>) -> tensor<?x8x64xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x8x64xf32>) tables(%cos, %sin : tensor<?x32xf32>) dims = [0]
    outs(%out : tensor<?x8x64xf32>)
  return %r : tensor<?x8x64xf32>
}

// -----

// Elements before and after the window are copied. The destination's elements
// outside of the window are not read.
// CHECK-LABEL: func.func @interleaved_window(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x4x16xbf16>, %[[COS:[^:]*]]: tensor<4x2x4xf16>, %[[SIN:[^:]*]]: tensor<4x2x4xf16>, %[[OUT:.*]]: tensor<2x3x4x16xbf16>)
// CHECK-DAG:     %[[LO:.*]] = tensor.extract_slice %[[X]][0, 0, 0, 2] [2, 3, 4, 4] [1, 1, 1, 2]
// CHECK-DAG:     %[[HI:.*]] = tensor.extract_slice %[[X]][0, 0, 0, 3] [2, 3, 4, 4] [1, 1, 1, 2]
// CHECK:         %[[R:.*]]:2 = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>, affine_map<(d0, d1, d2, d3) -> (d2, d0, d3)>
// CHECK-SAME:      ins(%[[LO]], %[[HI]], %[[COS]], %[[SIN]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %[[C:.*]]: f16, %[[T:.*]]: f16, %{{.*}}: bf16, %{{.*}}: bf16):
// CHECK-NEXT:      %[[WA:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT:      %[[WB:.*]] = arith.extf %[[B]] : bf16 to f32
// CHECK-NEXT:      %[[WC:.*]] = arith.extf %[[C]] : f16 to f32
// CHECK-NEXT:      %[[WT:.*]] = arith.extf %[[T]] : f16 to f32
// CHECK-NEXT:      %[[NT:.*]] = arith.negf %[[WT]] : f32
// CHECK-NEXT:      %[[BT:.*]] = arith.mulf %[[WB]], %[[NT]] : f32
// CHECK-NEXT:      %[[AT:.*]] = arith.mulf %[[WA]], %[[NT]] : f32
// CHECK-NEXT:      %[[NBT:.*]] = arith.negf %[[BT]] : f32
// CHECK-NEXT:      %[[R0:.*]] = math.fma %[[WA]], %[[WC]], %[[NBT]] : f32
// CHECK-NEXT:      %[[R1:.*]] = math.fma %[[WB]], %[[WC]], %[[AT]] : f32
// CHECK-NEXT:      %[[N0:.*]] = arith.truncf %[[R0]] : f32 to bf16
// CHECK-NEXT:      %[[N1:.*]] = arith.truncf %[[R1]] : f32 to bf16
// CHECK-NEXT:      linalg.yield %[[N0]], %[[N1]] : bf16, bf16
// CHECK:         %[[BEFORE:.*]] = tensor.extract_slice %[[X]][0, 0, 0, 0] [2, 3, 4, 2] [1, 1, 1, 1]
// CHECK-NEXT:    %[[I0:.*]] = tensor.insert_slice %[[BEFORE]] into %[[OUT]][0, 0, 0, 0] [2, 3, 4, 2] [1, 1, 1, 1]
// CHECK-NEXT:    %[[BEHIND:.*]] = tensor.extract_slice %[[X]][0, 0, 0, 10] [2, 3, 4, 6] [1, 1, 1, 1]
// CHECK-NEXT:    %[[I1:.*]] = tensor.insert_slice %[[BEHIND]] into %[[I0]][0, 0, 0, 10] [2, 3, 4, 6] [1, 1, 1, 1]
// CHECK-NEXT:    %[[I2:.*]] = tensor.insert_slice %[[R]]#0 into %[[I1]][0, 0, 0, 2] [2, 3, 4, 4] [1, 1, 1, 2]
// CHECK-NEXT:    %[[I3:.*]] = tensor.insert_slice %[[R]]#1 into %[[I2]][0, 0, 0, 3] [2, 3, 4, 4] [1, 1, 1, 2]
// CHECK-NEXT:    return %[[I3]]
func.func @interleaved_window(%x: tensor<2x3x4x16xbf16>, %cos: tensor<4x2x4xf16>, %sin: tensor<4x2x4xf16>, %out: tensor<2x3x4x16xbf16>) -> tensor<2x3x4x16xbf16> {
  %r = posenc.rotate interleaved inverse ins(%x : tensor<2x3x4x16xbf16>) tables(%cos, %sin : tensor<4x2x4xf16>) dims = [2, 0] offset = 2
    outs(%out : tensor<2x3x4x16xbf16>)
  return %r : tensor<2x3x4x16xbf16>
}

// -----

// Each tensor has its own generic. A size may be static in one type only.
// CHECK-LABEL: func.func @two_tensors_f64(
// CHECK:         %[[R:.*]]:2 = linalg.generic {{.*}} -> (d2)>, {{.*}} ins({{.*}} : tensor<5x2x4xf64>, tensor<5x2x4xf64>, tensor<4xf32>, tensor<4xf32>)
// CHECK:           arith.extf %{{.*}} : f32 to f64
// CHECK:           arith.extf %{{.*}} : f32 to f64
// CHECK-NOT:       arith.truncf
// CHECK:         %[[I:.*]] = tensor.insert_slice %[[R]]#0 into %{{.*}} : tensor<5x2x4xf64> into tensor<?x2x8xf64>
// CHECK:         tensor.insert_slice %[[R]]#1 into %[[I]]
// CHECK:         linalg.generic {{.*}} -> (d1)>, {{.*}} ins({{.*}} : tensor<5x4xf64>, tensor<5x4xf64>, tensor<4xf32>, tensor<4xf32>)
func.func @two_tensors_f64(%x: tensor<5x2x8xf64>, %o: tensor<?x2x8xf64>, %y: tensor<?x8xf64>, %z: tensor<5x8xf64>, %cos: tensor<4xf32>, %sin: tensor<4xf32>)
    -> (tensor<?x2x8xf64>, tensor<5x8xf64>) {
  %r:2 = posenc.rotate half ins(%x, %y : tensor<5x2x8xf64>, tensor<?x8xf64>) tables(%cos, %sin : tensor<4xf32>) dims = []
    outs(%o, %z : tensor<?x2x8xf64>, tensor<5x8xf64>)
  return %r#0, %r#1 : tensor<?x2x8xf64>, tensor<5x8xf64>
}

// -----

// CHECK-LABEL: func.func @not_on_memrefs(
// CHECK-NEXT:    posenc.sincos
// CHECK-NEXT:    posenc.rotate
func.func @not_on_memrefs(%x: memref<4x16xf32>, %p: memref<4xi64>, %c: memref<4x8xf32>, %s: memref<4x8xf32>) {
  posenc.sincos #posenc.frequencies<dim = 16, base = 1.000000e+04>
    positions(%p : memref<4xi64>) outs(%c, %s : memref<4x8xf32>, memref<4x8xf32>)
  posenc.rotate half ins(%x : memref<4x16xf32>) tables(%c, %s : memref<4x8xf32>) dims = [0] outs(%x : memref<4x16xf32>)
  return
}

// -----

// Empty results: nothing is written, and no slice begins in the tensor.
// CHECK-LABEL: func.func @no_heads(
// CHECK-SAME:    %{{.*}}: tensor<?x0x8xf32>, %[[O:.*]]: tensor<?x0x8xf32>,
// CHECK-NEXT:    return %[[O]]
func.func @no_heads(%x: tensor<?x0x8xf32>, %o: tensor<?x0x8xf32>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> tensor<?x0x8xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x0x8xf32>) tables(%c, %s : tensor<?x4xf32>) dims = [0]
    outs(%o : tensor<?x0x8xf32>)
  return %r : tensor<?x0x8xf32>
}

// -----

// CHECK-LABEL: func.func @no_positions(
// CHECK-SAME:    %{{.*}}: tensor<2x0xi64>, %[[C:.*]]: tensor<0x4xf32>, %[[S:.*]]: tensor<0x4xf32>)
// CHECK-NEXT:    return %[[C]], %[[S]]
func.func @no_positions(%p: tensor<2x0xi64>, %c: tensor<0x4xf32>, %s: tensor<0x4xf32>) -> (tensor<0x4xf32>, tensor<0x4xf32>) {
  %r:2 = posenc.sincos #posenc.frequencies<dim = 8> axes <contiguous, [2, 2]>
    positions(%p : tensor<2x0xi64>) outs(%c, %s : tensor<0x4xf32>, tensor<0x4xf32>)
  return %r#0, %r#1 : tensor<0x4xf32>, tensor<0x4xf32>
}
