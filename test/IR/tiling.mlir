//===- tiling.mlir - tiling and fusion through the transform dialect ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --transform-interpreter --canonicalize --cse \
// RUN:   --mlir-print-local-scope --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s

// There is one loop per dimension of the positions. Heads and lanes are not tiled,
// and both tensors share the tile of positions.
// CHECK-LABEL: func @rope_of_two(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<?x?x32x128xf32>, %[[K:[^:]+]]: tensor<?x?x8x128xf32>, %[[P:[^:]+]]: tensor<?x?xi64>
// CHECK: scf.forall (%[[B:.+]], %[[T:.+]]) in (%{{.+}}, %{{.+}}) shared_outs(%[[QO:.+]] = %[[Q]], %[[KO:.+]] = %[[K]])
// CHECK: %[[S:.+]] = affine.apply affine_map<(d0) -> (d0 * 16)>(%[[T]])
// CHECK: %[[N:.+]] = affine.min affine_map<(d0)[s0] -> (d0 * -16 + s0, 16)>(%[[T]])
// CHECK-DAG: %[[QT:.+]] = tensor.extract_slice %[[Q]][%[[B]], %[[S]], 0, 0] [1, %[[N]], 32, 128]
// CHECK-DAG: %[[KT:.+]] = tensor.extract_slice %[[K]][%[[B]], %[[S]], 0, 0] [1, %[[N]], 8, 128]
// CHECK-DAG: %[[PT:.+]] = tensor.extract_slice %[[P]][%[[B]], %[[S]]] [1, %[[N]]]
// CHECK-DAG: %[[QOT:.+]] = tensor.extract_slice %[[QO]][%[[B]], %[[S]], 0, 0] [1, %[[N]], 32, 128]
// CHECK-DAG: %[[KOT:.+]] = tensor.extract_slice %[[KO]][%[[B]], %[[S]], 0, 0] [1, %[[N]], 8, 128]
// CHECK: %[[R:.+]]:2 = posenc.rope half inverse <dim = 64, base = 1.000000e+04>
// CHECK-SAME: ins(%[[QT]], %[[KT]] : {{.*}}) positions(%[[PT]] : tensor<1x?xi64>) dims = [0, 1] offset = 64
// CHECK-SAME: outs(%[[QOT]], %[[KOT]] : tensor<1x?x32x128xf32>, tensor<1x?x8x128xf32>)
// CHECK: tensor.parallel_insert_slice %[[R]]#0 into %[[QO]][%[[B]], %[[S]], 0, 0] [1, %[[N]], 32, 128]
// CHECK: tensor.parallel_insert_slice %[[R]]#1 into %[[KO]][%[[B]], %[[S]], 0, 0] [1, %[[N]], 8, 128]
func.func @rope_of_two(%q: tensor<?x?x32x128xf32>, %k: tensor<?x?x8x128xf32>, %p: tensor<?x?xi64>)
    -> (tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) {
  %r:2 = posenc.rope half inverse <dim = 64>
    ins(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>) positions(%p : tensor<?x?xi64>)
    dims = [0, 1] offset = 64
    outs(%q, %k : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>)
  return %r#0, %r#1 : tensor<?x?x32x128xf32>, tensor<?x?x8x128xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [1, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The loops are those of the positions, in any order of the tensors' dimensions.
// CHECK-LABEL: func @heads_first(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<2x32x100x8xf32>, %[[P:[^:]+]]: tensor<2x100xi32>
// CHECK: scf.for %[[B:.+]] = %c0 to %c2 step %c1 iter_args(%[[I:.+]] = %[[Q]])
// CHECK: scf.for %[[T:.+]] = %c0 to %c100 step %c20 iter_args(%[[O:.+]] = %[[I]])
// CHECK-DAG: %[[QT:.+]] = tensor.extract_slice %[[Q]][%[[B]], 0, %[[T]], 0] [1, 32, 20, 8]
// CHECK-DAG: %[[PT:.+]] = tensor.extract_slice %[[P]][%[[B]], %[[T]]] [1, 20]
// CHECK-DAG: %[[OT:.+]] = tensor.extract_slice %[[O]][%[[B]], 0, %[[T]], 0] [1, 32, 20, 8]
// CHECK: posenc.rope half {{.*}} ins(%[[QT]] : {{.*}}) positions(%[[PT]] : {{.*}}) dims = [0, 2] outs(%[[OT]] :
func.func @heads_first(%q: tensor<2x32x100x8xf32>, %p: tensor<2x100xi32>) -> tensor<2x32x100x8xf32> {
  %r = posenc.rope half <dim = 8>
    ins(%q : tensor<2x32x100x8xf32>) positions(%p : tensor<2x100xi32>) dims = [0, 2]
    outs(%q : tensor<2x32x100x8xf32>)
  return %r : tensor<2x32x100x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [1, 20]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The dimension of axes is not a loop.
// CHECK-LABEL: func @sincos_axes(
// CHECK-SAME: %[[P:[^:]+]]: tensor<3x?x?xi32>
// CHECK: scf.for %[[B:.+]] = %c0 to %{{.+}} step %c1
// CHECK: scf.for %[[T:.+]] = %c0 to %{{.+}} step %c16 iter_args(%[[C:.+]] = %{{.+}}, %[[S:.+]] = %{{.+}})
// CHECK: %[[N:.+]] = affine.min
// CHECK-DAG: %[[PT:.+]] = tensor.extract_slice %[[P]][0, %[[B]], %[[T]]] [3, 1, %[[N]]]
// CHECK-DAG: %[[CT:.+]] = tensor.extract_slice %[[C]][%[[B]], %[[T]], 0] [1, %[[N]], 64]
// CHECK-DAG: %[[ST:.+]] = tensor.extract_slice %[[S]][%[[B]], %[[T]], 0] [1, %[[N]], 64]
// CHECK: %[[R:.+]]:2 = posenc.sincos <dim = 128, base = 1.000000e+04> axes <contiguous, [16, 24, 24]>
// CHECK-SAME: positions(%[[PT]] : tensor<3x1x?xi32>) outs(%[[CT]], %[[ST]] :
// CHECK-DAG: tensor.insert_slice %[[R]]#0 into %[[C]][%[[B]], %[[T]], 0] [1, %[[N]], 64]
// CHECK-DAG: tensor.insert_slice %[[R]]#1 into %[[S]][%[[B]], %[[T]], 0] [1, %[[N]], 64]
func.func @sincos_axes(%p: tensor<3x?x?xi32>, %c: tensor<?x?x64xf32>, %s: tensor<?x?x64xf32>)
    -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>) {
  %r:2 = posenc.sincos <dim = 128> axes <contiguous, [16, 24, 24]>
    positions(%p : tensor<3x?x?xi32>) outs(%c, %s : tensor<?x?x64xf32>, tensor<?x?x64xf32>)
  return %r#0, %r#1 : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.sincos"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [1, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile's offset is added to a scalar position, in 64 bits.
// CHECK-LABEL: func @scalar_i64(
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x100x8xf32>, %[[P:[^:]+]]: i64
// CHECK: scf.for %[[I:.+]] = %c0 to %c100 step %c25 iter_args(%[[O:.+]] = %[[X]])
// CHECK: %[[D:.+]] = arith.index_cast %[[I]] : index to i64
// CHECK: %[[S:.+]] = arith.addi %[[P]], %[[D]] : i64
// CHECK: posenc.rope interleaved {{.*}} positions(%[[S]] : i64) dims = [1] outs({{.*}} : tensor<2x25x8xf32>)
func.func @scalar_i64(%x: tensor<2x100x8xf32>, %p: i64) -> tensor<2x100x8xf32> {
  %r = posenc.rope interleaved <dim = 8> ins(%x : tensor<2x100x8xf32>) positions(%p : i64) dims = [1]
    outs(%x : tensor<2x100x8xf32>)
  return %r : tensor<2x100x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [25]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// 32-bit positions are extended, since the sum may overflow 32 bits.
// CHECK-LABEL: func @scalar_i32(
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x100x8xf32>, %[[P:[^:]+]]: i32
// CHECK: scf.for %[[I:.+]] = %c0 to %c100 step %c25 iter_args(%[[O:.+]] = %[[X]])
// CHECK: %[[D:.+]] = arith.index_cast %[[I]] : index to i64
// CHECK: %[[W:.+]] = arith.extsi %[[P]] : i32 to i64
// CHECK: %[[S:.+]] = arith.addi %[[W]], %[[D]] : i64
// CHECK: posenc.rope interleaved {{.*}} positions(%[[S]] : i64) dims = [1] outs({{.*}} : tensor<2x25x8xf32>)
func.func @scalar_i32(%x: tensor<2x100x8xf32>, %p: i32) -> tensor<2x100x8xf32> {
  %r = posenc.rope interleaved <dim = 8> ins(%x : tensor<2x100x8xf32>) positions(%p : i32) dims = [1]
    outs(%x : tensor<2x100x8xf32>)
  return %r : tensor<2x100x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [25]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func @scalar_index(
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x100x8xf32>, %[[P:[^:]+]]: index
// CHECK: scf.for %[[I:.+]] = %c0 to %c100 step %c25 iter_args(%[[O:.+]] = %[[X]])
// CHECK: %[[D:.+]] = arith.index_cast %[[I]] : index to i64
// CHECK: %[[W:.+]] = arith.index_cast %[[P]] : index to i64
// CHECK: %[[S:.+]] = arith.addi %[[W]], %[[D]] : i64
// CHECK: posenc.rope interleaved {{.*}} positions(%[[S]] : i64) dims = [1] outs({{.*}} : tensor<2x25x8xf32>)
func.func @scalar_index(%x: tensor<2x100x8xf32>, %p: index) -> tensor<2x100x8xf32> {
  %r = posenc.rope interleaved <dim = 8> ins(%x : tensor<2x100x8xf32>) positions(%p : index) dims = [1]
    outs(%x : tensor<2x100x8xf32>)
  return %r : tensor<2x100x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [25]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Without an offset, nothing is added.
// CHECK-LABEL: func @scalar_whole(
// CHECK-SAME: %[[P:[^:]+]]: i32
// CHECK-NOT: arith
// CHECK: posenc.sincos {{.*}} positions(%[[P]] : i32)
func.func @scalar_whole(%p: i32, %t: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %r:2 = posenc.sincos <dim = 8> positions(%p : i32) outs(%t, %t : tensor<?x4xf32>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.sincos"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled = transform.structured.tile_using_for %op tile_sizes [0]
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// CHECK-LABEL: func @sinusoidal(
// CHECK-SAME: %[[T:[^:]+]]: tensor<?x512xf32>, %[[P:[^:]+]]: i64
// CHECK: scf.forall (%[[I:.+]]) in (%{{.+}}) shared_outs(%[[O:.+]] = %[[T]])
// CHECK: %[[S:.+]] = affine.apply affine_map<(d0) -> (d0 * 64)>(%[[I]])
// CHECK: %[[N:.+]] = affine.min
// CHECK: %[[D:.+]] = arith.index_cast %[[S]] : index to i64
// CHECK: %[[F:.+]] = arith.addi %[[P]], %[[D]] : i64
// CHECK: %[[OT:.+]] = tensor.extract_slice %[[O]][%[[S]], 0] [%[[N]], 512]
// CHECK: posenc.sinusoidal interleaved <dim = 512, base = 1.000000e+04> positions(%[[F]] : i64) outs(%[[OT]] :
func.func @sinusoidal(%t: tensor<?x512xf32>, %p: i64) -> tensor<?x512xf32> {
  %r = posenc.sinusoidal interleaved <dim = 512> positions(%p : i64) outs(%t : tensor<?x512xf32>)
  return %r : tensor<?x512xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.sinusoidal"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [64]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func @rotate(
// CHECK-SAME: %[[X:[^:]+]]: tensor<4x30x8xf32>, %[[C:[^:]+]]: tensor<30x2xf32>
// CHECK: scf.for %[[I:.+]] = %c0 to %c30 step %c10 iter_args(%[[O:.+]] = %[[X]])
// CHECK-DAG: %[[XT:.+]] = tensor.extract_slice %[[X]][0, %[[I]], 0] [4, 10, 8]
// CHECK-DAG: %[[CT:.+]] = tensor.extract_slice %[[C]][%[[I]], 0] [10, 2]
// CHECK-DAG: %[[OT:.+]] = tensor.extract_slice %[[O]][0, %[[I]], 0] [4, 10, 8]
// CHECK: posenc.rotate half inverse ins(%[[XT]] : {{.*}}) tables(%[[CT]], %[[CT]] : tensor<10x2xf32>) dims = [1] offset = 4 outs(%[[OT]] :
func.func @rotate(%x: tensor<4x30x8xf32>, %c: tensor<30x2xf32>) -> tensor<4x30x8xf32> {
  %r = posenc.rotate half inverse ins(%x : tensor<4x30x8xf32>) tables(%c, %c : tensor<30x2xf32>)
    dims = [1] offset = 4 outs(%x : tensor<4x30x8xf32>)
  return %r : tensor<4x30x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rotate"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [10]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Fusion: computes the rows of both tables that a tile needs in one operation.
// CHECK-LABEL: func @fuse_sincos(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x4x64xf32>, %[[P:[^:]+]]: tensor<?xi64>
// CHECK-NOT: posenc.sincos
// CHECK: scf.for %[[I:.+]] = %c0 to %{{.+}} step %c8
// CHECK: %[[PT:.+]] = tensor.extract_slice %[[P]][%[[I]]]
// CHECK: %[[T:.+]]:2 = posenc.sincos {{.*}} positions(%[[PT]] : tensor<?xi64>)
// CHECK-NOT: posenc.sincos
// CHECK: posenc.rotate half {{.*}} tables(%[[T]]#0, %[[T]]#1 : tensor<?x32xf32>)
func.func @fuse_sincos(%x: tensor<?x4x64xf32>, %p: tensor<?xi64>, %t: tensor<?x32xf32>) -> tensor<?x4x64xf32> {
  %c:2 = posenc.sincos <dim = 64> positions(%p : tensor<?xi64>) outs(%t, %t : tensor<?x32xf32>, tensor<?x32xf32>)
  %r = posenc.rotate half ins(%x : tensor<?x4x64xf32>) tables(%c#0, %c#1 : tensor<?x32xf32>) dims = [0]
    outs(%x : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rotate"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.fuse %op tile_sizes [8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func @fuse_sincos_of_scalar(
// CHECK-SAME: %[[P:[^:]+]]: i64
// CHECK-NOT: posenc.sincos
// CHECK: scf.forall (%[[I:.+]]) in
// CHECK: %[[S:.+]] = affine.apply affine_map<(d0) -> (d0 * 8)>(%[[I]])
// CHECK: %[[D:.+]] = arith.index_cast %[[S]] : index to i64
// CHECK: %[[F:.+]] = arith.addi %[[P]], %[[D]] : i64
// CHECK: %[[T:.+]]:2 = posenc.sincos {{.*}} positions(%[[F]] : i64)
// CHECK-NOT: posenc.sincos
// CHECK: posenc.rotate interleaved {{.*}} tables(%[[T]]#0, %[[T]]#1 : tensor<?x32xf32>)
func.func @fuse_sincos_of_scalar(%x: tensor<?x64xf32>, %p: i64, %t: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %c:2 = posenc.sincos <dim = 64> positions(%p : i64) outs(%t, %t : tensor<?x32xf32>, tensor<?x32xf32>)
  %r = posenc.rotate interleaved ins(%x : tensor<?x64xf32>) tables(%c#0, %c#1 : tensor<?x32xf32>) dims = [0]
    outs(%x : tensor<?x64xf32>)
  return %r : tensor<?x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rotate"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %sincos = transform.structured.match ops{["posenc.sincos"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %into = transform.structured.fuse_into_containing_op %sincos into %loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A consumer of some heads is fused with a tile that has all heads.
// CHECK-LABEL: func @fuse_part_of_heads(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x?x64xf32>, %[[P:[^:]+]]: tensor<?xi64>, %{{.*}}, %[[H:[^:]+]]: index)
// CHECK: scf.forall (%[[I:.+]]) in
// CHECK: %[[ALL:.+]] = tensor.dim %[[X]], %c1
// CHECK: %[[XT:.+]] = tensor.extract_slice %[[X]][%[[I]], 0, 0] [1, %[[ALL]], 64]
// CHECK: %[[R:.+]] = posenc.rope half {{.*}} ins(%[[XT]] :
// CHECK: %[[RT:.+]] = tensor.extract_slice %[[R]][0, 0, 0] [1, %[[H]], 64]
// CHECK: math.exp %[[RT]] : tensor<1x?x64xf32>
func.func @fuse_part_of_heads(%x: tensor<?x?x64xf32>, %p: tensor<?xi64>, %d: tensor<?x?x64xf32>, %heads: index)
    -> tensor<?x?x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %r = posenc.rope half <dim = 64> ins(%x : tensor<?x?x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x?x64xf32>)
  %o = scf.forall (%i) in (%n) shared_outs(%a = %d) -> tensor<?x?x64xf32> {
    %s = tensor.extract_slice %r[%i, 0, 0] [1, %heads, 64] [1, 1, 1] : tensor<?x?x64xf32> to tensor<1x?x64xf32>
    %e = math.exp %s : tensor<1x?x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %e into %a[%i, 0, 0] [1, %heads, 64] [1, 1, 1]
        : tensor<1x?x64xf32> into tensor<?x?x64xf32>
    }
  }
  return %o : tensor<?x?x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %loop = transform.structured.match ops{["scf.forall"]} in %root : (!transform.any_op) -> !transform.any_op
    %fused, %into = transform.structured.fuse_into_containing_op %op into %loop
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A single position has no loop.
// CHECK-LABEL: func @one_position(
// CHECK-NEXT: posenc.rope
// CHECK-NEXT: return
func.func @one_position(%x: tensor<4x64xf32>, %p: tensor<i64>) -> tensor<4x64xf32> {
  %r = posenc.rope half <dim = 64> ins(%x : tensor<4x64xf32>) positions(%p : tensor<i64>) dims = []
    outs(%x : tensor<4x64xf32>)
  return %r : tensor<4x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled = transform.structured.tile_using_for %op tile_sizes []
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// -----

// Tiling memrefs is an error.
func.func @on_memrefs(%x: memref<?x64xf32>, %p: memref<?xi64>) {
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  posenc.rope half <dim = 64> ins(%x : memref<?x64xf32>) positions(%p : memref<?xi64>) dims = [0]
    outs(%x : memref<?x64xf32>)
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["posenc.rope"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
