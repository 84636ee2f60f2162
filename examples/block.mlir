//===- block.mlir - a transformer block as one function -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Norm, QKV projection, rope, kv_append, causal attention over the cache, output
// projection and residual, with 16 query heads and 4 key heads of 128 channels.
// The loops run one after another, and intermediate buffers are in a workspace that
// the caller provides. For the first 1,024 tokens of a sequence:
//
//   posenc-bench examples/block.mlir --function=bf16_block --threads=1 \
//     --input=1024x2048xbf16=random --input=2048xbf16=random \
//     --input=2048x2048xbf16=random --input=2048x512xbf16=random \
//     --input=2048x512xbf16=random --input=2048x2048xbf16=random \
//     --input=1x1024xi64=iota --input=1xi64=1024 \
//     --input=1x4x1024x128xbf16=0 --input=1x4x1024x128xbf16=0

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>

func.func @f32_block(%x: tensor<?x2048xf32>,
    %g: tensor<2048xf32>,
    %wq: tensor<2048x2048xf32>,
    %wk: tensor<2048x512xf32>,
    %wv: tensor<2048x512xf32>,
    %wo: tensor<2048x2048xf32>,
    %p: tensor<1x?xi64>,
    %n: tensor<1xi64>,
    %kc: tensor<1x4x?x128xf32>,
    %vc: tensor<1x4x?x128xf32>)
    -> (tensor<?x2048xf32>, tensor<1x4x?x128xf32>, tensor<1x4x?x128xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 2048.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %t = tensor.dim %x, %c0 : tensor<?x2048xf32>
  %s_e = tensor.empty(%t) : tensor<?xf32>
  %s_f = linalg.fill ins(%zero : f32) outs(%s_e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x2048xf32>) outs(%s_f : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %q2 = arith.mulf %a, %a : f32
      %y = arith.addf %o, %q2 : f32
      linalg.yield %y : f32
  } -> tensor<?xf32>
  %x_e = tensor.empty(%t) : tensor<?x2048xf32>
  %h = linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s, %g : tensor<?x2048xf32>, tensor<?xf32>, tensor<2048xf32>) outs(%x_e : tensor<?x2048xf32>) {
    ^bb0(%a: f32, %b: f32, %d: f32, %o: f32):
      %m = arith.divf %b, %size : f32
      %m2 = arith.addf %m, %eps : f32
      %f = math.rsqrt %m2 : f32
      %y = arith.mulf %a, %f : f32
      %z = arith.mulf %y, %d : f32
      linalg.yield %z : f32
  } -> tensor<?x2048xf32>
  %q_p_e = tensor.empty(%t) : tensor<?x2048xf32>
  %q_p_f = linalg.fill ins(%zero : f32) outs(%q_p_e : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %q_p = linalg.matmul
    ins(%h, %wq : tensor<?x2048xf32>, tensor<2048x2048xf32>)
    outs(%q_p_f : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %k_p_e = tensor.empty(%t) : tensor<?x512xf32>
  %k_p_f = linalg.fill ins(%zero : f32) outs(%k_p_e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %k_p = linalg.matmul
    ins(%h, %wk : tensor<?x2048xf32>, tensor<2048x512xf32>)
    outs(%k_p_f : tensor<?x512xf32>) -> tensor<?x512xf32>
  %v_p_e = tensor.empty(%t) : tensor<?x512xf32>
  %v_p_f = linalg.fill ins(%zero : f32) outs(%v_p_e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %v_p = linalg.matmul
    ins(%h, %wv : tensor<?x2048xf32>, tensor<2048x512xf32>)
    outs(%v_p_f : tensor<?x512xf32>) -> tensor<?x512xf32>
  %q = tensor.expand_shape %q_p [[0, 1], [2, 3]]
    output_shape [1, %t, 16, 128]
    : tensor<?x2048xf32> into tensor<1x?x16x128xf32>
  %k = tensor.expand_shape %k_p [[0, 1], [2, 3]]
    output_shape [1, %t, 4, 128]
    : tensor<?x512xf32> into tensor<1x?x4x128xf32>
  %v = tensor.expand_shape %v_p [[0, 1], [2, 3]]
    output_shape [1, %t, 4, 128]
    : tensor<?x512xf32> into tensor<1x?x4x128xf32>
  %qe = tensor.empty(%t) : tensor<1x?x16x128xf32>
  %ke = tensor.empty(%t) : tensor<1x?x4x128xf32>
  %qr, %kr = posenc.rope half #posenc.frequencies<dim = 128>
    ins(%q, %k : tensor<1x?x16x128xf32>, tensor<1x?x4x128xf32>) positions(%p : tensor<1x?xi64>) dims = [0, 1]
    outs(%qe, %ke : tensor<1x?x16x128xf32>, tensor<1x?x4x128xf32>)
  %c:2 = posenc.kv_append cache_layout = head_major
    ins(%kr, %v : tensor<1x?x4x128xf32>, tensor<1x?x4x128xf32>) lengths(%n : tensor<1xi64>)
    outs(%kc, %vc : tensor<1x4x?x128xf32>, tensor<1x4x?x128xf32>)
  %a4 = posenc.attention causal key_layout = head_major
    ins(%qr, %c#0, %c#1 : tensor<1x?x16x128xf32>, tensor<1x4x?x128xf32>, tensor<1x4x?x128xf32>) lengths(%n : tensor<1xi64>)
    outs(%qe : tensor<1x?x16x128xf32>)
  %am = tensor.collapse_shape %a4 [[0, 1], [2, 3]] : tensor<1x?x16x128xf32> into tensor<?x2048xf32>
  %o_e = tensor.empty(%t) : tensor<?x2048xf32>
  %o_f = linalg.fill ins(%zero : f32) outs(%o_e : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %op = linalg.matmul ins(%am, %wo : tensor<?x2048xf32>, tensor<2048x2048xf32>)
    outs(%o_f : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %r = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %op : tensor<?x2048xf32>, tensor<?x2048xf32>) outs(%x_e : tensor<?x2048xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %y = arith.addf %a, %b : f32
      linalg.yield %y : f32
  } -> tensor<?x2048xf32>
  return %r, %c#0, %c#1 : tensor<?x2048xf32>, tensor<1x4x?x128xf32>, tensor<1x4x?x128xf32>
}

func.func @bf16_block(%x: tensor<?x2048xbf16>,
    %g: tensor<2048xbf16>,
    %wq: tensor<2048x2048xbf16>,
    %wk: tensor<2048x512xbf16>,
    %wv: tensor<2048x512xbf16>,
    %wo: tensor<2048x2048xbf16>,
    %p: tensor<1x?xi64>,
    %n: tensor<1xi64>,
    %kc: tensor<1x4x?x128xbf16>,
    %vc: tensor<1x4x?x128xbf16>)
    -> (tensor<?x2048xbf16>, tensor<1x4x?x128xbf16>, tensor<1x4x?x128xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 2048.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %t = tensor.dim %x, %c0 : tensor<?x2048xbf16>
  %s_e = tensor.empty(%t) : tensor<?xf32>
  %s_f = linalg.fill ins(%zero : f32) outs(%s_e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x2048xbf16>) outs(%s_f : tensor<?xf32>) {
    ^bb0(%a: bf16, %o: f32):
      %af = arith.extf %a : bf16 to f32
      %q2 = arith.mulf %af, %af : f32
      %y = arith.addf %o, %q2 : f32
      linalg.yield %y : f32
  } -> tensor<?xf32>
  %x_e = tensor.empty(%t) : tensor<?x2048xbf16>
  %h = linalg.generic {indexing_maps = [#ij, #i, #j, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s, %g : tensor<?x2048xbf16>, tensor<?xf32>, tensor<2048xbf16>) outs(%x_e : tensor<?x2048xbf16>) {
    ^bb0(%a: bf16, %b: f32, %d: bf16, %o: bf16):
      %af = arith.extf %a : bf16 to f32
      %df = arith.extf %d : bf16 to f32
      %m = arith.divf %b, %size : f32
      %m2 = arith.addf %m, %eps : f32
      %f = math.rsqrt %m2 : f32
      %y = arith.mulf %af, %f : f32
      %z = arith.mulf %y, %df : f32
      %l = arith.truncf %z : f32 to bf16
      linalg.yield %l : bf16
  } -> tensor<?x2048xbf16>
  %q_p_e = tensor.empty(%t) : tensor<?x2048xf32>
  %q_p_f = linalg.fill ins(%zero : f32) outs(%q_p_e : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %q_p_s = linalg.matmul
    ins(%h, %wq : tensor<?x2048xbf16>, tensor<2048x2048xbf16>)
    outs(%q_p_f : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %q_p_n = tensor.empty(%t) : tensor<?x2048xbf16>
  %q_p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%q_p_s : tensor<?x2048xf32>) outs(%q_p_n : tensor<?x2048xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %y = arith.truncf %a : f32 to bf16
      linalg.yield %y : bf16
  } -> tensor<?x2048xbf16>
  %k_p_e = tensor.empty(%t) : tensor<?x512xf32>
  %k_p_f = linalg.fill ins(%zero : f32) outs(%k_p_e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %k_p_s = linalg.matmul
    ins(%h, %wk : tensor<?x2048xbf16>, tensor<2048x512xbf16>)
    outs(%k_p_f : tensor<?x512xf32>) -> tensor<?x512xf32>
  %k_p_n = tensor.empty(%t) : tensor<?x512xbf16>
  %k_p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%k_p_s : tensor<?x512xf32>) outs(%k_p_n : tensor<?x512xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %y = arith.truncf %a : f32 to bf16
      linalg.yield %y : bf16
  } -> tensor<?x512xbf16>
  %v_p_e = tensor.empty(%t) : tensor<?x512xf32>
  %v_p_f = linalg.fill ins(%zero : f32) outs(%v_p_e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %v_p_s = linalg.matmul
    ins(%h, %wv : tensor<?x2048xbf16>, tensor<2048x512xbf16>)
    outs(%v_p_f : tensor<?x512xf32>) -> tensor<?x512xf32>
  %v_p_n = tensor.empty(%t) : tensor<?x512xbf16>
  %v_p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%v_p_s : tensor<?x512xf32>) outs(%v_p_n : tensor<?x512xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %y = arith.truncf %a : f32 to bf16
      linalg.yield %y : bf16
  } -> tensor<?x512xbf16>
  %q = tensor.expand_shape %q_p [[0, 1], [2, 3]]
    output_shape [1, %t, 16, 128]
    : tensor<?x2048xbf16> into tensor<1x?x16x128xbf16>
  %k = tensor.expand_shape %k_p [[0, 1], [2, 3]]
    output_shape [1, %t, 4, 128]
    : tensor<?x512xbf16> into tensor<1x?x4x128xbf16>
  %v = tensor.expand_shape %v_p [[0, 1], [2, 3]]
    output_shape [1, %t, 4, 128]
    : tensor<?x512xbf16> into tensor<1x?x4x128xbf16>
  %qe = tensor.empty(%t) : tensor<1x?x16x128xbf16>
  %ke = tensor.empty(%t) : tensor<1x?x4x128xbf16>
  %qr, %kr = posenc.rope half #posenc.frequencies<dim = 128>
    ins(%q, %k : tensor<1x?x16x128xbf16>, tensor<1x?x4x128xbf16>) positions(%p : tensor<1x?xi64>) dims = [0, 1]
    outs(%qe, %ke : tensor<1x?x16x128xbf16>, tensor<1x?x4x128xbf16>)
  %c:2 = posenc.kv_append cache_layout = head_major
    ins(%kr, %v : tensor<1x?x4x128xbf16>, tensor<1x?x4x128xbf16>) lengths(%n : tensor<1xi64>)
    outs(%kc, %vc : tensor<1x4x?x128xbf16>, tensor<1x4x?x128xbf16>)
  %a4 = posenc.attention causal key_layout = head_major
    ins(%qr, %c#0, %c#1 : tensor<1x?x16x128xbf16>, tensor<1x4x?x128xbf16>, tensor<1x4x?x128xbf16>) lengths(%n : tensor<1xi64>)
    outs(%qe : tensor<1x?x16x128xbf16>)
  %am = tensor.collapse_shape %a4 [[0, 1], [2, 3]] : tensor<1x?x16x128xbf16> into tensor<?x2048xbf16>
  %o_e = tensor.empty(%t) : tensor<?x2048xf32>
  %o_f = linalg.fill ins(%zero : f32) outs(%o_e : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %op = linalg.matmul ins(%am, %wo : tensor<?x2048xbf16>, tensor<2048x2048xbf16>)
    outs(%o_f : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %r = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %op : tensor<?x2048xbf16>, tensor<?x2048xf32>) outs(%x_e : tensor<?x2048xbf16>) {
    ^bb0(%a: bf16, %b: f32, %o: bf16):
      %af = arith.extf %a : bf16 to f32
      %y = arith.addf %af, %b : f32
      %l = arith.truncf %y : f32 to bf16
      linalg.yield %l : bf16
  } -> tensor<?x2048xbf16>
  return %r, %c#0, %c#1 : tensor<?x2048xbf16>, tensor<1x4x?x128xbf16>, tensor<1x4x?x128xbf16>
}
