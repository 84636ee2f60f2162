//===- attention.mlir - attention without a fused kernel ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Variants of attention that are decomposed to linalg instead of fused: f64, heads
// wider than 576, and a dynamic number of heads.
//
//   posenc-bench examples/attention.mlir --function=f64_causal
//
//===----------------------------------------------------------------------===//

func.func @f64_full(%q: tensor<1x8x1024x128xf64>, %k: tensor<1x8x1024x128xf64>, %v: tensor<1x8x1024x128xf64>, %o: tensor<1x8x1024x128xf64>) -> tensor<1x8x1024x128xf64> {
  %r = posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x8x1024x128xf64>, tensor<1x8x1024x128xf64>, tensor<1x8x1024x128xf64>)
    outs(%o : tensor<1x8x1024x128xf64>)
  return %r : tensor<1x8x1024x128xf64>
}

func.func @f64_causal(%q: tensor<1x8x1024x128xf64>, %k: tensor<1x8x1024x128xf64>, %v: tensor<1x8x1024x128xf64>, %o: tensor<1x8x1024x128xf64>) -> tensor<1x8x1024x128xf64> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x8x1024x128xf64>, tensor<1x8x1024x128xf64>, tensor<1x8x1024x128xf64>)
    outs(%o : tensor<1x8x1024x128xf64>)
  return %r : tensor<1x8x1024x128xf64>
}

func.func @heads_of_640(%q: tensor<1x8x1024x640xf32>, %k: tensor<1x8x1024x640xf32>, %v: tensor<1x8x1024x640xf32>, %o: tensor<1x8x1024x640xf32>) -> tensor<1x8x1024x640xf32> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x8x1024x640xf32>, tensor<1x8x1024x640xf32>, tensor<1x8x1024x640xf32>)
    outs(%o : tensor<1x8x1024x640xf32>)
  return %r : tensor<1x8x1024x640xf32>
}

func.func @heads_of_640_alibi(%q: tensor<1x8x1024x640xf32>, %k: tensor<1x8x1024x640xf32>, %v: tensor<1x8x1024x640xf32>, %o: tensor<1x8x1024x640xf32>) -> tensor<1x8x1024x640xf32> {
  %r = posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x8x1024x640xf32>, tensor<1x8x1024x640xf32>, tensor<1x8x1024x640xf32>)
    outs(%o : tensor<1x8x1024x640xf32>) score(%s, %b, %h, %i, %j) {
      %bias = posenc.alibi(%h, %i, %j) heads = 8 : f32
      %x = arith.addf %s, %bias : f32
      posenc.yield %x : f32
    }
  return %r : tensor<1x8x1024x640xf32>
}

func.func @bf16_heads_of_640(%q: tensor<1x8x1024x640xbf16>, %k: tensor<1x8x1024x640xbf16>, %v: tensor<1x8x1024x640xbf16>, %o: tensor<1x8x1024x640xbf16>) -> tensor<1x8x1024x640xbf16> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x8x1024x640xbf16>, tensor<1x8x1024x640xbf16>, tensor<1x8x1024x640xbf16>)
    outs(%o : tensor<1x8x1024x640xbf16>)
  return %r : tensor<1x8x1024x640xbf16>
}

func.func @heads_of_576(%q: tensor<1x8x1024x576xf32>, %k: tensor<1x8x1024x576xf32>, %v: tensor<1x8x1024x576xf32>, %o: tensor<1x8x1024x576xf32>) -> tensor<1x8x1024x576xf32> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x8x1024x576xf32>, tensor<1x8x1024x576xf32>, tensor<1x8x1024x576xf32>)
    outs(%o : tensor<1x8x1024x576xf32>)
  return %r : tensor<1x8x1024x576xf32>
}

func.func @latent(%q: tensor<1x16x512x576xf32>, %k: tensor<1x1x512x576xf32>, %v: tensor<1x1x512x512xf32>, %o: tensor<1x16x512x512xf32>) -> tensor<1x16x512x512xf32> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x16x512x576xf32>, tensor<1x1x512x576xf32>, tensor<1x1x512x512xf32>)
    outs(%o : tensor<1x16x512x512xf32>)
  return %r : tensor<1x16x512x512xf32>
}

func.func @unknown_heads(%q: tensor<1x?x1024x128xf32>, %k: tensor<1x?x1024x128xf32>, %v: tensor<1x?x1024x128xf32>, %o: tensor<1x?x1024x128xf32>) -> tensor<1x?x1024x128xf32> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<1x?x1024x128xf32>, tensor<1x?x1024x128xf32>, tensor<1x?x1024x128xf32>)
    outs(%o : tensor<1x?x1024x128xf32>)
  return %r : tensor<1x?x1024x128xf32>
}
