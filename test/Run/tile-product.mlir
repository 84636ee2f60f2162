//===- tile-product.mlir - products on panels by every unit ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Each function multiplies the same matrices. Their elements are numbers of bf16, so
// products are exact, and sums differ by roundings only. At the vector stage, the
// module for sapphirerapids has the tiles of AMX, which run on every CPU.
// RUN: rm -rf %t && mkdir %t
// RUN: posenc-compile %s --target=x86-64-v3 --opt-level=0 -o %t/libportable.so
// RUN: posenc-compile %s --target=sapphirerapids --emit=vector -o %t/tiles.mlir
// RUN: FileCheck %s --input-file=%t/tiles.mlir
// RUN: posenc-compile %t/tiles.mlir --target=x86-64-v3 --opt-level=0 -o %t/libtiles.so
// CHECK: amx.tile_mulf
// DEFINE: %{function} = floats
// DEFINE: %{inputs} = --input=32x64xbf16=random --input=64x32xbf16=random:seed=2 --input=32x32xf32=random:seed=3
// DEFINE: %{expect} = --expected_output=@%t/c.npy --atol=2e-5
// DEFINE: %{check} = posenc-run %t/libportable.so --function=%{function} %{inputs} %{expect} \
// DEFINE:   && posenc-run %t/libtiles.so --function=%{function} %{inputs} %{expect} \
// DEFINE:   && posenc-run %s --function=%{function} %{inputs} %{expect}
// RUN: posenc-run %s --function=matmul %{inputs} --output=@%t/c.npy
// RUN: %{check}
// REDEFINE: %{function} = transposed
// RUN: %{check}
// REDEFINE: %{function} = bf16_pairs
// RUN: %{check}
// REDEFINE: %{function} = f16_pairs
// RUN: %{check}

// Control: words whose numbers are in another order.
// REDEFINE: %{function} = swapped_pairs
// RUN: not posenc-run %t/libportable.so --function=%{function} %{inputs} %{expect}
// RUN: not posenc-run %t/libtiles.so --function=%{function} %{inputs} %{expect}

func.func @matmul(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xbf16>, tensor<64x32xbf16>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

func.func @floats(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = posenc.tile_product floats ins(%a, %b : tensor<32x64xbf16>, tensor<64x32xbf16>) sums(%c : tensor<32x32xf32>)
  return %0 : tensor<32x32xf32>
}

// The last 32 rows of B are 0; an infinity in A has no effect there.
func.func @transposed(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : bf16
  %infinity = arith.constant 0x7F80 : bf16
  %x = tensor.pad %a low[0, 0] high[0, 32] {
  ^bb0(%m: index, %k: index):
    tensor.yield %infinity : bf16
  } : tensor<32x64xbf16> to tensor<32x96xbf16>
  %y = tensor.pad %b low[0, 0] high[32, 0] {
  ^bb0(%k: index, %n: index):
    tensor.yield %zero : bf16
  } : tensor<64x32xbf16> to tensor<96x32xbf16>
  %e = tensor.empty() : tensor<96x32xbf16>
  %t = linalg.transpose ins(%x : tensor<32x96xbf16>) outs(%e : tensor<96x32xbf16>) permutation = [1, 0]
  %0 = posenc.tile_product floats transposed skips_zeros ins(%t, %y : tensor<96x32xbf16>, tensor<96x32xbf16>) sums(%c : tensor<32x32xf32>)
  return %0 : tensor<32x32xf32>
}

#id = affine_map<(d0, d1) -> (d0, d1)>

func.func private @words(%low: tensor<32x32xi16>, %high: tensor<32x32xi16>) -> tensor<32x32xi32> {
  %e = tensor.empty() : tensor<32x32xi32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%low, %high : tensor<32x32xi16>, tensor<32x32xi16>) outs(%e : tensor<32x32xi32>) {
  ^bb0(%x: i16, %y: i16, %o: i32):
    %c16 = arith.constant 16 : i32
    %l = arith.extui %x : i16 to i32
    %h = arith.extui %y : i16 to i32
    %s = arith.shli %h, %c16 : i32
    %w = arith.ori %l, %s : i32
    linalg.yield %w : i32
  } -> tensor<32x32xi32>
  return %0 : tensor<32x32xi32>
}

func.func private @pairs_of_rows(%a: tensor<32x64xi16>) -> tensor<32x32xi32> {
  %low = tensor.extract_slice %a[0, 0] [32, 32] [1, 2] : tensor<32x64xi16> to tensor<32x32xi16>
  %high = tensor.extract_slice %a[0, 1] [32, 32] [1, 2] : tensor<32x64xi16> to tensor<32x32xi16>
  %0 = func.call @words(%low, %high) : (tensor<32x32xi16>, tensor<32x32xi16>) -> tensor<32x32xi32>
  return %0 : tensor<32x32xi32>
}

func.func private @pairs_of_columns(%b: tensor<64x32xi16>) -> tensor<32x32xi32> {
  %low = tensor.extract_slice %b[0, 0] [32, 32] [2, 1] : tensor<64x32xi16> to tensor<32x32xi16>
  %high = tensor.extract_slice %b[1, 0] [32, 32] [2, 1] : tensor<64x32xi16> to tensor<32x32xi16>
  %0 = func.call @words(%low, %high) : (tensor<32x32xi16>, tensor<32x32xi16>) -> tensor<32x32xi32>
  return %0 : tensor<32x32xi32>
}

func.func @bf16_pairs(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %x = arith.bitcast %a : tensor<32x64xbf16> to tensor<32x64xi16>
  %y = arith.bitcast %b : tensor<64x32xbf16> to tensor<64x32xi16>
  %wa = func.call @pairs_of_rows(%x) : (tensor<32x64xi16>) -> tensor<32x32xi32>
  %wb = func.call @pairs_of_columns(%y) : (tensor<64x32xi16>) -> tensor<32x32xi32>
  %0 = posenc.tile_product bf16_pairs ins(%wa, %wb : tensor<32x32xi32>, tensor<32x32xi32>) sums(%c : tensor<32x32xf32>)
  return %0 : tensor<32x32xf32>
}

func.func @swapped_pairs(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %c16 = arith.constant dense<16> : tensor<32x32xi32>
  %x = arith.bitcast %a : tensor<32x64xbf16> to tensor<32x64xi16>
  %y = arith.bitcast %b : tensor<64x32xbf16> to tensor<64x32xi16>
  %wa = func.call @pairs_of_rows(%x) : (tensor<32x64xi16>) -> tensor<32x32xi32>
  %wb = func.call @pairs_of_columns(%y) : (tensor<64x32xi16>) -> tensor<32x32xi32>
  %up = arith.shli %wb, %c16 : tensor<32x32xi32>
  %down = arith.shrui %wb, %c16 : tensor<32x32xi32>
  %swapped = arith.ori %up, %down : tensor<32x32xi32>
  %0 = posenc.tile_product bf16_pairs ins(%wa, %swapped : tensor<32x32xi32>, tensor<32x32xi32>) sums(%c : tensor<32x32xf32>)
  return %0 : tensor<32x32xf32>
}

func.func @f16_pairs(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %af = arith.extf %a : tensor<32x64xbf16> to tensor<32x64xf32>
  %bf = arith.extf %b : tensor<64x32xbf16> to tensor<64x32xf32>
  %ah = arith.truncf %af : tensor<32x64xf32> to tensor<32x64xf16>
  %bh = arith.truncf %bf : tensor<64x32xf32> to tensor<64x32xf16>
  %x = arith.bitcast %ah : tensor<32x64xf16> to tensor<32x64xi16>
  %y = arith.bitcast %bh : tensor<64x32xf16> to tensor<64x32xi16>
  %wa = func.call @pairs_of_rows(%x) : (tensor<32x64xi16>) -> tensor<32x32xi32>
  %wb = func.call @pairs_of_columns(%y) : (tensor<64x32xi16>) -> tensor<32x32xi32>
  %0 = posenc.tile_product f16_pairs ins(%wa, %wb : tensor<32x32xi32>, tensor<32x32xi32>) sums(%c : tensor<32x32xf32>)
  return %0 : tensor<32x32xf32>
}
