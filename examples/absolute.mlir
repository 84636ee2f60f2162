//===- absolute.mlir - learned absolute positions ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row of a learned table is added to each token. Positions that are an input are
// checked before the kernel runs: one outside of the table is an error, and no
// result is written.
//
//===----------------------------------------------------------------------===//

#token = affine_map<(b, t, c) -> (b, t)>
#all = affine_map<(b, t, c) -> (b, t, c)>
#row = affine_map<(b, t, c) -> (t, c)>

!x = tensor<?x?x768xf32>
!bf16 = tensor<?x?x768xbf16>
!ids = tensor<?x?xi64>

// GPT-2: x + table[position].
func.func @gpt2(%x: !x, %table: tensor<1024x768xf32>, %positions: !ids) -> !x {
  %r = linalg.generic {indexing_maps = [#all, #token, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %positions : !x, !ids) outs(%x : !x) {
    ^bb0(%a: f32, %position: i64, %out: f32):
      %i = arith.index_cast %position : i64 to index
      %c = linalg.index 2 : index
      %row = tensor.extract %table[%i, %c] : tensor<1024x768xf32>
      %y = arith.addf %a, %row : f32
      linalg.yield %y : f32
  } -> !x
  return %r : !x
}

// The same in bf16; each sum is rounded once.
func.func @gpt2_bf16(%x: !bf16, %table: tensor<1024x768xbf16>, %positions: !ids) -> !bf16 {
  %r = linalg.generic {indexing_maps = [#all, #token, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %positions : !bf16, !ids) outs(%x : !bf16) {
    ^bb0(%a: bf16, %position: i64, %out: bf16):
      %i = arith.index_cast %position : i64 to index
      %c = linalg.index 2 : index
      %row = tensor.extract %table[%i, %c] : tensor<1024x768xbf16>
      %y = arith.addf %a, %row : bf16
      linalg.yield %y : bf16
  } -> !bf16
  return %r : !bf16
}

// OPT: the first two rows of the table belong to no position. A slice keeps the
// check of positions exact; indices that are computed from positions, such as
// position + 2, are clamped to the table instead.
func.func @opt(%x: !x, %table: tensor<2050x768xf32>, %positions: !ids) -> !x {
  %rows = tensor.extract_slice %table[2, 0] [2048, 768] [1, 1]
      : tensor<2050x768xf32> to tensor<2048x768xf32>
  %r = linalg.generic {indexing_maps = [#all, #token, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %positions : !x, !ids) outs(%x : !x) {
    ^bb0(%a: f32, %position: i64, %out: f32):
      %i = arith.index_cast %position : i64 to index
      %c = linalg.index 2 : index
      %row = tensor.extract %rows[%i, %c] : tensor<2048x768xf32>
      %y = arith.addf %a, %row : f32
      linalg.yield %y : f32
  } -> !x
  return %r : !x
}

// BERT: the sum of the rows of a word, its position and its segment, before the
// norm.
func.func @bert(%words: tensor<?x768xf32>, %table: tensor<512x768xf32>,
                %segments: tensor<2x768xf32>, %ids: !ids, %positions: !ids,
                %types: !ids) -> !x {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %ids, %c0 : !ids
  %tokens = tensor.dim %ids, %c1 : !ids
  %o = tensor.empty(%batch, %tokens) : !x
  %r = linalg.generic {indexing_maps = [#token, #token, #token, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids, %positions, %types : !ids, !ids, !ids) outs(%o : !x) {
    ^bb0(%id: i64, %position: i64, %type: i64, %out: f32):
      %n = arith.index_cast %id : i64 to index
      %i = arith.index_cast %position : i64 to index
      %k = arith.index_cast %type : i64 to index
      %c = linalg.index 2 : index
      %word = tensor.extract %words[%n, %c] : tensor<?x768xf32>
      %row = tensor.extract %table[%i, %c] : tensor<512x768xf32>
      %segment = tensor.extract %segments[%k, %c] : tensor<2x768xf32>
      %a = arith.addf %word, %segment : f32
      %y = arith.addf %a, %row : f32
      linalg.yield %y : f32
  } -> !x
  return %r : !x
}

// ViT: token t has row t of the table, so there is nothing to gather. Entry
// points check that the table has as many rows as there are tokens.
func.func @vit(%x: !x, %table: tensor<197x768xf32>) -> !x {
  %c1 = arith.constant 1 : index
  %tokens = tensor.dim %x, %c1 : !x
  %rows = tensor.extract_slice %table[0, 0] [%tokens, 768] [1, 1]
      : tensor<197x768xf32> to tensor<?x768xf32>
  %r = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %rows : !x, tensor<?x768xf32>) outs(%x : !x) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %y = arith.addf %a, %b : f32
      linalg.yield %y : f32
  } -> !x
  return %r : !x
}
