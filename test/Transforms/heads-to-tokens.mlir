//===- heads-to-tokens.mlir - many query heads of one token ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-heads-to-tokens | FileCheck %s

// Absorbed latent attention.
// CHECK-LABEL: func.func @latent(
// CHECK:         %[[Q:.*]] = tensor.expand_shape {{.*}} : tensor<?x128x576xbf16> into tensor<?x1x128x576xbf16>
// CHECK:         %[[R:.*]] = posenc.attention query_layout = head_major
// CHECK-SAME:      ins(%[[Q]], %{{.*}}, %{{.*}} : tensor<?x1x128x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>) lengths(
// CHECK-NOT:     causal
// CHECK:         %[[ROWS:.*]] = tensor.collapse_shape %[[R]]
// CHECK:         %[[O:.*]] = tensor.expand_shape %[[ROWS]] {{.*}} into tensor<?x1x128x512xbf16>
// CHECK:         return %[[O]]
func.func @latent(%q: tensor<?x1x128x576xbf16>, %k: tensor<?x?x1x576xbf16>, %v: tensor<?x?x1x512xbf16>, %n: tensor<?xi64>, %o: tensor<?x1x128x512xbf16>) -> tensor<?x1x128x512xbf16> {
  %r = posenc.attention causal ins(%q, %k, %v : tensor<?x1x128x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>) lengths(%n : tensor<?xi64>) outs(%o : tensor<?x1x128x512xbf16>)
  return %r : tensor<?x1x128x512xbf16>
}

// CHECK-LABEL: func.func @head_major(
// CHECK:         posenc.attention query_layout = head_major key_layout = head_major
// CHECK-SAME:      tensor<2x2x40x64xf32>, tensor<2x2x?x64xf32>
// CHECK:         tensor.expand_shape {{.*}} into tensor<2x80x1x64xf32>
func.func @head_major(%q: tensor<2x80x1x64xf32>, %k: tensor<2x2x?x64xf32>, %o: tensor<2x80x1x64xf32>) -> tensor<2x80x1x64xf32> {
  %r = posenc.attention query_layout = head_major key_layout = head_major ins(%q, %k, %k : tensor<2x80x1x64xf32>, tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32>) outs(%o : tensor<2x80x1x64xf32>)
  return %r : tensor<2x80x1x64xf32>
}

// CHECK-LABEL: func.func @few_heads(
// CHECK-NOT:     tensor.expand_shape
func.func @few_heads(%q: tensor<2x1x32x64xf32>, %k: tensor<2x?x1x64xf32>, %o: tensor<2x1x32x64xf32>) -> tensor<2x1x32x64xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<2x1x32x64xf32>, tensor<2x?x1x64xf32>, tensor<2x?x1x64xf32>) outs(%o : tensor<2x1x32x64xf32>)
  return %r : tensor<2x1x32x64xf32>
}

// CHECK-LABEL: func.func @two_tokens(
// CHECK-NOT:     tensor.expand_shape
func.func @two_tokens(%q: tensor<2x2x64x64xf32>, %k: tensor<2x?x1x64xf32>, %o: tensor<2x2x64x64xf32>) -> tensor<2x2x64x64xf32> {
  %r = posenc.attention causal ins(%q, %k, %k : tensor<2x2x64x64xf32>, tensor<2x?x1x64xf32>, tensor<2x?x1x64xf32>) outs(%o : tensor<2x2x64x64xf32>)
  return %r : tensor<2x2x64x64xf32>
}

// The window is relative to the position of the token.
// CHECK-LABEL: func.func @window(
// CHECK-NOT:     tensor.expand_shape
func.func @window(%q: tensor<2x1x64x64xf32>, %k: tensor<2x?x1x64xf32>, %o: tensor<2x1x64x64xf32>) -> tensor<2x1x64x64xf32> {
  %r = posenc.attention causal window_left = 9 ins(%q, %k, %k : tensor<2x1x64x64xf32>, tensor<2x?x1x64xf32>, tensor<2x?x1x64xf32>) outs(%o : tensor<2x1x64x64xf32>)
  return %r : tensor<2x1x64x64xf32>
}

// CHECK-LABEL: func.func @sinks(
// CHECK-NOT:     tensor.expand_shape
func.func @sinks(%q: tensor<2x1x64x64xf32>, %k: tensor<2x?x1x64xf32>, %s: tensor<64xf32>, %o: tensor<2x1x64x64xf32>) -> tensor<2x1x64x64xf32> {
  %r = posenc.attention ins(%q, %k, %k : tensor<2x1x64x64xf32>, tensor<2x?x1x64xf32>, tensor<2x?x1x64xf32>) sinks(%s : tensor<64xf32>) outs(%o : tensor<2x1x64x64xf32>)
  return %r : tensor<2x1x64x64xf32>
}
