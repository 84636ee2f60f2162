//===- fold-conversions.mlir - dequantization fused into attention --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-elementwise-to-linalg --posenc-fold-conversions \
// RUN:   --canonicalize --cse | FileCheck %s

#row = affine_map<(b, h, k, d) -> (b, h, k, d)>
#bhk = affine_map<(b, h, k, d) -> (b, h, k)>
#h = affine_map<(b, h, k, d) -> (h)>
#hk = affine_map<(b, h, k, d) -> (h, k)>
#none = affine_map<(b, h, k, d) -> ()>
#channel = affine_map<(b, h, k, d) -> (d)>
#tbhk = affine_map<(b, k, h, d) -> (b, h, k)>

// Scales per row and per head.
// CHECK-LABEL: func @rows(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<1x3x8x64xf32>, %[[K:[^:]+]]: tensor<1x2x?x64xi8>, %[[S:[^:]+]]: tensor<1x2x?xf32>, %[[V:[^:]+]]: tensor<1x2x?x64xi8>, %[[T:[^:]+]]: tensor<2xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[HEADS:.+]] = tensor.expand_shape %[[T]] {{\[\[}}0, 1, 2]] output_shape [1, 2, 1]
// CHECK: posenc.attention {{.*}} ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) key_scales(%[[S]] : tensor<1x2x?xf32>) value_scales(%[[HEADS]] : tensor<1x2x1xf32>)
func.func @rows(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x?x64xi8>, %s: tensor<1x2x?xf32>, %v: tensor<1x2x?x64xi8>, %t: tensor<2xf32>) -> tensor<1x3x8x64xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<1x2x?x64xi8>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #bhk, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x2x?x64xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %g = linalg.generic {indexing_maps = [#row, #h, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v, %t : tensor<1x2x?x64xi8>, tensor<2xf32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %b, %x : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %r = posenc.attention causal key_layout = head_major ins(%q, %f, %g : tensor<1x3x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

// One scale for the whole tensor: a tensor of rank 0, and a constant.
// CHECK-LABEL: func @constants(
// CHECK-DAG: %[[C:.+]] = arith.constant dense<2.500000e-01> : tensor<1x1x1xf32>
// CHECK-DAG: %[[T:.+]] = tensor.expand_shape %{{.*}} [] output_shape [1, 1, 1]
// CHECK-NOT: linalg.generic
// CHECK: posenc.attention {{.*}} tensor<1x2x?x64xf8E4M3FN>{{.*}} key_scales(%[[T]] : tensor<1x1x1xf32>) value_scales(%[[C]] : tensor<1x1x1xf32>)
func.func @constants(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x?x64xf8E4M3FN>, %v: tensor<1x2x?x64xf8E4M3FN>, %t: tensor<f32>) -> tensor<1x3x8x64xf32> {
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.25 : f32
  %n = tensor.dim %k, %c2 : tensor<1x2x?x64xf8E4M3FN>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #none, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %t : tensor<1x2x?x64xf8E4M3FN>, tensor<f32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: f8E4M3FN, %b: f32, %c: f32):
      %x = arith.extf %a : f8E4M3FN to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %g = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v : tensor<1x2x?x64xf8E4M3FN>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: f8E4M3FN, %c: f32):
      %x = arith.extf %a : f8E4M3FN to f32
      %y = arith.mulf %x, %cst : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %r = posenc.attention key_layout = head_major ins(%q, %f, %g : tensor<1x3x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

// Float caches without scales; arith ops on tensors are supported, too.
// CHECK-LABEL: func @elementwise(
// CHECK-NOT: linalg.generic
// CHECK: posenc.attention causal ins({{.*}} : tensor<2x3x8x64xf32>, tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>) outs
func.func @elementwise(%q: tensor<2x3x8x64xf32>, %k: tensor<2x?x2x64xbf16>, %v: tensor<2x?x2x64xbf16>) -> tensor<2x3x8x64xf32> {
  %f = arith.extf %k : tensor<2x?x2x64xbf16> to tensor<2x?x2x64xf32>
  %g = arith.extf %v : tensor<2x?x2x64xbf16> to tensor<2x?x2x64xf32>
  %r = posenc.attention causal ins(%q, %f, %g : tensor<2x3x8x64xf32>, tensor<2x?x2x64xf32>, tensor<2x?x2x64xf32>) outs(%q : tensor<2x3x8x64xf32>)
  return %r : tensor<2x3x8x64xf32>
}

// Scales are (heads, tokens) in any layout of the keys.
// CHECK-LABEL: func @token_major(
// CHECK-SAME: %[[S:[^:]+]]: tensor<1x2x?xf32>)
// CHECK-NOT: linalg.generic
// CHECK: posenc.attention {{.*}} key_scales(%[[S]] : tensor<1x2x?xf32>) value_scales(%[[S]] : tensor<1x2x?xf32>)
func.func @token_major(%q: tensor<1x3x8x64xf32>, %k: tensor<1x?x2x64xi8>, %s: tensor<1x2x?xf32>) -> tensor<1x3x8x64xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %k, %c1 : tensor<1x?x2x64xi8>
  %e = tensor.empty(%n) : tensor<1x?x2x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #tbhk, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x?x2x64xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x?x2x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x?x2x64xf32>
  %r = posenc.attention causal ins(%q, %f, %f : tensor<1x3x8x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

// Not folded: scales per channel.
// CHECK-LABEL: func @channels(
// CHECK: linalg.generic
// CHECK: posenc.attention {{.*}} tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs
func.func @channels(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x?x64xi8>, %s: tensor<64xf32>) -> tensor<1x3x8x64xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<1x2x?x64xi8>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #channel, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x2x?x64xi8>, tensor<64xf32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %r = posenc.attention causal key_layout = head_major ins(%q, %f, %f : tensor<1x3x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

// Not folded: values without a conversion.
// CHECK-LABEL: func @one_of_two(
// CHECK: linalg.generic
// CHECK: posenc.attention {{.*}} tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs
func.func @one_of_two(%q: tensor<1x3x8x64xf32>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x2x64xf32>) -> tensor<1x3x8x64xf32> {
  %f = arith.extf %k : tensor<1x?x2x64xbf16> to tensor<1x?x2x64xf32>
  %r = posenc.attention causal ins(%q, %f, %v : tensor<1x3x8x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

// Not folded: 16-bit floats with scales.
// CHECK-LABEL: func @scaled_floats(
// CHECK: linalg.generic
// CHECK: posenc.attention {{.*}} tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs
func.func @scaled_floats(%q: tensor<1x3x8x64xf32>, %k: tensor<1x?x2x64xf16>, %e: tensor<1x?x2x64xf32>) -> tensor<1x3x8x64xf32> {
  %cst = arith.constant 0.25 : f32
  %f = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k : tensor<1x?x2x64xf16>) outs(%e : tensor<1x?x2x64xf32>) {
    ^bb0(%a: f16, %c: f32):
      %x = arith.extf %a : f16 to f32
      %y = arith.mulf %x, %cst : f32
      linalg.yield %y : f32
  } -> tensor<1x?x2x64xf32>
  %r = posenc.attention causal ins(%q, %f, %f : tensor<1x3x8x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

// Not folded: more ops than a conversion.
// CHECK-LABEL: func @other_steps(
// CHECK: linalg.generic
// CHECK: posenc.attention {{.*}} tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs
func.func @other_steps(%q: tensor<1x3x8x64xf32>, %k: tensor<1x?x2x64xi8>, %e: tensor<1x?x2x64xf32>) -> tensor<1x3x8x64xf32> {
  %zero = arith.constant 3.0 : f32
  %cst = arith.constant 0.25 : f32
  %f = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k : tensor<1x?x2x64xi8>) outs(%e : tensor<1x?x2x64xf32>) {
    ^bb0(%a: i8, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.subf %x, %zero : f32
      %z = arith.mulf %y, %cst : f32
      linalg.yield %z : f32
  } -> tensor<1x?x2x64xf32>
  %r = posenc.attention causal ins(%q, %f, %f : tensor<1x3x8x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}
