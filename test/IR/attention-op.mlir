//===- attention-op.mlir - syntax of attention ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-roundtrip --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --emit-bytecode \
// RUN:   | posenc-opt --mlir-print-local-scope | FileCheck %s
// RUN: posenc-opt %s --mlir-print-op-generic --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=GENERIC

// Grouped queries and values of another width.
// CHECK-LABEL: func @plain(
// CHECK: posenc.attention ins(%arg0, %arg1, %arg2 : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>) outs(%arg3 : tensor<?x?x8x32xf32>){{$}}
// GENERIC-LABEL: sym_name = "plain"
// GENERIC: "posenc.attention"(
// GENERIC: <{key_layout = #posenc<head_layout token_major>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>, query_layout = #posenc<head_layout token_major>}>
func.func @plain(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    outs(%o : tensor<?x?x8x32xf32>)
  return
}

// CHECK-LABEL: func @log_sums(
// CHECK: %{{.*}}:2 = posenc.attention ins(%arg0, %arg1, %arg2 : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>) outs(%arg3, %arg4 : tensor<?x?x8x32xf32>, tensor<?x?x8xf32>){{$}}
func.func @log_sums(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %o: tensor<?x?x8x32xf32>, %l: tensor<?x?x8xf32>) {
  %r:2 = posenc.attention
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    outs(%o, %l : tensor<?x?x8x32xf32>, tensor<?x?x8xf32>)
  return
}

// Attributes in any order, and reals without a fraction.
// CHECK-LABEL: func @numbers(
// CHECK: posenc.attention causal window_left = 4095 window_right = 0 scale = 1.000000e+00 ins(
// CHECK-SAME: outs(%arg3 : tensor<?x?x8x32xf32>) {test.note}{{$}}
// GENERIC-LABEL: sym_name = "numbers"
// GENERIC: causal, 
// GENERIC: scale = 1.000000e+00 : f64, window_left = 4095 : i64, window_right = 0 : i64
func.func @numbers(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention scale = 1 window_right = 0 window_left = 4095 causal
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    outs(%o : tensor<?x?x8x32xf32>) {test.note}
  return
}

// CHECK-LABEL: func @head_major(
// CHECK: posenc.attention query_layout = head_major key_layout = head_major ins(
func.func @head_major(%q: tensor<2x8x5x16xbf16>, %k: tensor<2x8x?x16xbf16>, %l: tensor<2x8x5xf32>) {
  %r:2 = posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %k : tensor<2x8x5x16xbf16>, tensor<2x8x?x16xbf16>, tensor<2x8x?x16xbf16>)
    outs(%q, %l : tensor<2x8x5x16xbf16>, tensor<2x8x5xf32>)
  return
}

// Explicit default values.
// CHECK-LABEL: func @mixed_layouts(
// CHECK: posenc.attention key_layout = head_major ins(
func.func @mixed_layouts(%q: tensor<2x5x8x16xf16>, %k: tensor<2x8x?x16xf16>) {
  %r = posenc.attention query_layout = token_major key_layout = head_major
    ins(%q, %k, %k : tensor<2x5x8x16xf16>, tensor<2x8x?x16xf16>, tensor<2x8x?x16xf16>)
    outs(%q : tensor<2x5x8x16xf16>)
  return
}

// CHECK-LABEL: func @rotations(
// CHECK: posenc.attention query_rotation = <pairing = half, frequencies = <dim = 64, base = 1.000000e+04>> key_rotation = <pairing = half, frequencies = <dim = 32, base = 1.000000e+04>, offset = 32> ins(
// CHECK-SAME: query_positions(%arg3 : tensor<?x?xi64>) outs(
func.func @rotations(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %p: tensor<?x?xi64>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention
    query_rotation = #posenc.rotation<pairing = half, frequencies = <dim = 64>>
    key_rotation = <pairing = half, frequencies = <dim = 32>, offset = 32>
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%o : tensor<?x?x8x32xf32>)
  return
}

// CHECK-LABEL: func @axes(
// CHECK: axes = <axial, [16, 16]>>
// CHECK-SAME: query_positions(%arg3 : tensor<2x?x?xi32>) key_positions(%arg3 : tensor<2x?x?xi32>) outs(
func.func @axes(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %p: tensor<2x?x?xi32>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention
    query_rotation = <pairing = interleaved, frequencies = <dim = 64>, axes = <axial, [16, 16]>>
    key_rotation = <pairing = interleaved, frequencies = <dim = 64>, axes = <axial, [16, 16]>>
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    key_positions(%p : tensor<2x?x?xi32>) query_positions(%p : tensor<2x?x?xi32>)
    outs(%o : tensor<?x?x8x32xf32>)
  return
}

// CHECK-LABEL: func @norms(
// CHECK: posenc.attention norm_eps = 9.9999999999999995E-7 ins(
// CHECK-SAME: query_norm(%arg3 : tensor<64xf32>) key_norm(%arg3 : tensor<64xf32>) outs(
// GENERIC-LABEL: sym_name = "norms"
// GENERIC: array<i32: 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1>
func.func @norms(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %w: tensor<64xf32>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention norm_eps = 1.0e-06
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    query_norm(%w : tensor<64xf32>) key_norm(%w : tensor<64xf32>)
    outs(%o : tensor<?x?x8x32xf32>)
  return
}

// Norms over all heads of a token, with an offset of 1.
// CHECK-LABEL: func @norms_of_all_heads(
// CHECK: posenc.attention norm_eps = 1.000000e-05 norm_offset = 1.000000e+00 ins(
// CHECK-SAME: query_norm(%arg3 : tensor<512xf32>) key_norm(%arg4 : tensor<128xf32>) outs(
func.func @norms_of_all_heads(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %w: tensor<512xf32>, %x: tensor<128xf32>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention norm_eps = 1.0e-05 norm_offset = 1
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    query_norm(%w : tensor<512xf32>) key_norm(%x : tensor<128xf32>)
    outs(%o : tensor<?x?x8x32xf32>)
  return
}

// CHECK-LABEL: func @decode(
// CHECK: posenc.attention key_layout = head_major ins(
// CHECK-SAME: lengths(%arg2 : tensor<?xi64>) sinks(%arg3 : tensor<32xf32>) outs(
func.func @decode(%q: tensor<?x1x32x128xf16>, %k: tensor<?x8x?x128xf16>, %n: tensor<?xi64>, %s: tensor<32xf32>) {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %k : tensor<?x1x32x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>)
    sinks(%s : tensor<32xf32>) lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x32x128xf16>)
  return
}

// CHECK-LABEL: func @ragged(
// CHECK: posenc.attention causal query_rotation
// CHECK-SAME: query_positions(%arg3 : tensor<?xi64>) cu_seqlens(%arg2, %arg2 : tensor<?xi32>, tensor<?xi32>) outs(
// GENERIC-LABEL: sym_name = "ragged"
// GENERIC: array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2>
func.func @ragged(%q: tensor<?x8x64xf32>, %k: tensor<?x2x64xf32>, %c: tensor<?xi32>, %p: tensor<?xi64>, %l: tensor<?x8xf32>) {
  %r:2 = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %k : tensor<?x8x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>)
    query_positions(%p : tensor<?xi64>) cu_seqlens(%c, %c : tensor<?xi32>, tensor<?xi32>)
    outs(%q, %l : tensor<?x8x64xf32>, tensor<?x8xf32>)
  return
}

// CHECK-LABEL: func @ragged_head_major(
// CHECK: cu_seqlens(%arg2, %arg2 : tensor<4xi64>, tensor<4xi64>) outs(
func.func @ragged_head_major(%q: tensor<8x?x64xf32>, %k: tensor<2x?x64xf32>, %c: tensor<4xi64>) {
  %r = posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %k : tensor<8x?x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>)
    cu_seqlens(%c, %c : tensor<4xi64>, tensor<4xi64>)
    outs(%q : tensor<8x?x64xf32>)
  return
}

// Packed queries against caches.
// CHECK-LABEL: func @ragged_queries(
// CHECK: lengths(%arg2 : tensor<3xi64>) cu_seqlens(%arg3 : tensor<4xi32>) outs(
func.func @ragged_queries(%q: tensor<?x8x64xf32>, %k: tensor<3x?x2x64xf32>, %n: tensor<3xi64>, %c: tensor<4xi32>) {
  %r = posenc.attention causal
    ins(%q, %k, %k : tensor<?x8x64xf32>, tensor<3x?x2x64xf32>, tensor<3x?x2x64xf32>)
    lengths(%n : tensor<3xi64>) cu_seqlens(%c : tensor<4xi32>)
    outs(%q : tensor<?x8x64xf32>)
  return
}

// CHECK-LABEL: func @paged(
// CHECK: lengths(%arg2 : tensor<3xi32>) block_table(%arg3 : tensor<3x?xi32>) outs(
func.func @paged(%q: tensor<3x1x8x64xf32>, %k: tensor<?x16x2x64xf32>, %n: tensor<3xi32>, %t: tensor<3x?xi32>, %p: tensor<3x?xi64>) {
  %r = posenc.attention key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %k : tensor<3x1x8x64xf32>, tensor<?x16x2x64xf32>, tensor<?x16x2x64xf32>)
    key_positions(%p : tensor<3x?xi64>) lengths(%n : tensor<3xi32>) block_table(%t : tensor<3x?xi32>)
    outs(%q : tensor<3x1x8x64xf32>)
  return
}

// CHECK-LABEL: func @paged_ragged(
// CHECK: lengths(%arg2 : tensor<3xi32>) cu_seqlens(%arg4 : tensor<4xi32>) block_table(%arg3 : tensor<3x?xi32>) outs(
func.func @paged_ragged(%q: tensor<?x8x64xf32>, %k: tensor<?x2x16x64xf32>, %n: tensor<3xi32>, %t: tensor<3x?xi32>, %c: tensor<4xi32>) {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %k : tensor<?x8x64xf32>, tensor<?x2x16x64xf32>, tensor<?x2x16x64xf32>)
    cu_seqlens(%c : tensor<4xi32>) lengths(%n : tensor<3xi32>) block_table(%t : tensor<3x?xi32>)
    outs(%q : tensor<?x8x64xf32>)
  return
}

// CHECK-LABEL: func @bool_mask(
// CHECK: mask(%arg3 : tensor<1x1x?x?xi1>) outs(
func.func @bool_mask(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %m: tensor<1x1x?x?xi1>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    mask(%m : tensor<1x1x?x?xi1>)
    outs(%o : tensor<?x?x8x32xf32>)
  return
}

// Masks with broadcast dimensions, on memrefs.
// CHECK-LABEL: func @float_mask(
// CHECK: {{^ *}}posenc.attention ins(
// CHECK-SAME: mask(%arg2 : memref<2x8x5x7xf32>) sinks(%arg3 : memref<8xf64>) outs(%arg0, %arg4 : memref<2x5x8x16xf64>, memref<2x5x8xf64>){{$}}
func.func @float_mask(%q: memref<2x5x8x16xf64>, %k: memref<2x7x4x16xf64>, %m: memref<2x8x5x7xf32>, %s: memref<8xf64>, %l: memref<2x5x8xf64>) {
  posenc.attention
    ins(%q, %k, %k : memref<2x5x8x16xf64>, memref<2x7x4x16xf64>, memref<2x7x4x16xf64>)
    mask(%m : memref<2x8x5x7xf32>) sinks(%s : memref<8xf64>)
    outs(%q, %l : memref<2x5x8x16xf64>, memref<2x5x8xf64>)
  return
}

// No batch, no queries, no keys.
// CHECK-LABEL: func @empty(
// CHECK: posenc.attention ins(
func.func @empty(%q: tensor<0x0x8x64xf32>, %k: tensor<0x0x8x64xf32>) {
  %r = posenc.attention ins(%q, %k, %k : tensor<0x0x8x64xf32>, tensor<0x0x8x64xf32>, tensor<0x0x8x64xf32>)
    outs(%q : tensor<0x0x8x64xf32>)
  return
}

// CHECK-LABEL: func @regions(
// CHECK: outs(%arg5 : tensor<?x?x8x32xf32>) {test.note}{{$}}
// CHECK-NEXT: score(%s, %b, %h, %i, %j) {
// CHECK-NEXT:   %{{.*}} = memref.load %arg3[%h] : memref<?xf32>
// CHECK-NEXT:   %{{.*}} = arith.addf %s, 
// CHECK-NEXT:   posenc.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: where(%b, %h, %i, %j) {
// CHECK-NEXT:   %{{.*}} = tensor.extract %arg4[%i]
// CHECK-NEXT:   %{{.*}} = tensor.extract %arg4[%j]
// CHECK-NEXT:   %{{.*}} = arith.cmpi
// CHECK-NEXT:   posenc.yield %{{.*}} : i1
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @regions(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x32xf32>, %m: memref<?xf32>, %d: tensor<?xi32>, %o: tensor<?x?x8x32xf32>) {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x32xf32>)
    outs(%o : tensor<?x?x8x32xf32>) {test.note}
    score(%x, %b, %head, %i, %j) {
      %t = memref.load %m[%head] : memref<?xf32>
      %y = arith.addf %x, %t : f32
      posenc.yield %y : f32
    }
    where(%b, %head, %i, %j) {
      %t = tensor.extract %d[%i] : tensor<?xi32>
      %u = tensor.extract %d[%j] : tensor<?xi32>
      %y = arith.cmpi eq, %t, %u : i32
      posenc.yield %y : i1
    }
  return
}

// A score region in f64, and a where region without a score region.
// CHECK-LABEL: func @where_f64(
// CHECK: posenc.attention
// CHECK-NEXT: score(%s, %b, %h, %i, %j) {
// CHECK-NEXT:   posenc.yield %s : f64
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = posenc.attention
// CHECK-NEXT: where(%b, %h, %i, %j) {
func.func @where_f64(%q: tensor<2x5x8x16xf64>) {
  %r = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf64>, tensor<2x5x8x16xf64>, tensor<2x5x8x16xf64>)
    outs(%q : tensor<2x5x8x16xf64>)
    score(%s, %b, %h, %i, %j) {
      posenc.yield %s : f64
    }
  %t = posenc.attention ins(%q, %q, %q : tensor<2x5x8x16xf64>, tensor<2x5x8x16xf64>, tensor<2x5x8x16xf64>)
    outs(%q : tensor<2x5x8x16xf64>)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sge, %i, %j : index
      posenc.yield %y : i1
    }
  return
}

// A tile of queries with trailing queries.
// CHECK-LABEL: func @tile_of_queries(
// CHECK: posenc.attention causal ins({{.*}}) trailing_queries(%arg2) outs(
func.func @tile_of_queries(%q: tensor<2x5x8x16xf32>, %k: tensor<2x?x2x16xf32>, %n: index) {
  %r = posenc.attention causal ins(%q, %k, %k : tensor<2x5x8x16xf32>, tensor<2x?x2x16xf32>, tensor<2x?x2x16xf32>)
    trailing_queries(%n) outs(%q : tensor<2x5x8x16xf32>)
  return
}

// Caches of another type, with scales that are broadcast in some dimensions.
// CHECK-LABEL: func @quantized(
// CHECK: posenc.attention key_layout = head_major ins(%arg0, %arg1, %arg1 : tensor<?x1x8x16xbf16>, tensor<?x2x?x16xi8>, tensor<?x2x?x16xi8>) lengths(%arg2 : tensor<?xi64>) key_scales(%arg3 : tensor<?x2x?xf32>) value_scales(%arg4 : tensor<1x2x1xf32>) outs(
// CHECK: posenc.attention key_layout = head_major ins(%arg0, %arg5, %arg5 : tensor<?x1x8x16xbf16>, tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>) key_scales({{.*}}) value_scales({{.*}}) outs(
// CHECK: posenc.attention key_layout = head_major ins(%arg0, %arg6, %arg6 : tensor<?x1x8x16xbf16>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>) outs(
func.func @quantized(%q: tensor<?x1x8x16xbf16>, %k: tensor<?x2x?x16xi8>, %n: tensor<?xi64>, %ks: tensor<?x2x?xf32>, %vs: tensor<1x2x1xf32>, %f: tensor<?x2x?x16xf8E4M3FN>, %w: tensor<?x2x?x16xf32>) {
  %0 = posenc.attention key_layout = head_major
    ins(%q, %k, %k : tensor<?x1x8x16xbf16>, tensor<?x2x?x16xi8>, tensor<?x2x?x16xi8>)
    value_scales(%vs : tensor<1x2x1xf32>) key_scales(%ks : tensor<?x2x?xf32>) lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x1x8x16xbf16>)
  %1 = posenc.attention key_layout = head_major
    ins(%q, %f, %f : tensor<?x1x8x16xbf16>, tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>)
    key_scales(%ks : tensor<?x2x?xf32>) value_scales(%vs : tensor<1x2x1xf32>)
    outs(%q : tensor<?x1x8x16xbf16>)
  %2 = posenc.attention key_layout = head_major
    ins(%q, %w, %w : tensor<?x1x8x16xbf16>, tensor<?x2x?x16xf32>, tensor<?x2x?x16xf32>)
    outs(%q : tensor<?x1x8x16xbf16>)
  return
}
