//===- tile-product-invalid.mlir - errors of tile_product -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

func.func @f(%a: tensor<8x4x2xf32>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{'posenc.tile_product' op expected rank 2, got 'tensor<8x4x2xf32>' (tile_product_c1)}}
  %0 = posenc.tile_product floats ins(%a, %c : tensor<8x4x2xf32>, tensor<8x8xf32>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

func.func @f(%a: tensor<8x8xf64>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{expected floats that are not wider than the sums' 'f32', got 'tensor<8x8xf64>' (tile_product_c2)}}
  %0 = posenc.tile_product floats ins(%c, %a : tensor<8x8xf32>, tensor<8x8xf64>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

// Words are no floats.
func.func @f(%a: tensor<8x8xi32>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{expected floats that are not wider than the sums' 'f32', got 'tensor<8x8xi32>' (tile_product_c2)}}
  %0 = posenc.tile_product floats ins(%a, %c : tensor<8x8xi32>, tensor<8x8xf32>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

func.func @f(%a: tensor<8x8xbf16>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{expected pairs in words of i32 or f32, got 'tensor<8x8xbf16>' (tile_product_c2)}}
  %0 = posenc.tile_product bf16_pairs ins(%a, %c : tensor<8x8xbf16>, tensor<8x8xf32>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

func.func @f(%a: tensor<8x8xi32>, %c: tensor<8x8xf64>) {
  // expected-error @+1 {{expected sums of f32 for pairs, got 'tensor<8x8xf64>' (tile_product_c2)}}
  %0 = posenc.tile_product f16_pairs ins(%a, %a : tensor<8x8xi32>, tensor<8x8xi32>) sums(%c : tensor<8x8xf64>)
  return
}

// -----

func.func @quads(%a: tensor<8x8xf32>, %c: tensor<8x8xi32>) {
  // expected-error @+1 {{expected quads in words of i32, got 'tensor<8x8xf32>' (tile_product_c2)}}
  %0 = posenc.tile_product u8s8_quads ins(%c, %a : tensor<8x8xi32>, tensor<8x8xf32>) sums(%c : tensor<8x8xi32>)
  return
}

// -----

func.func @sums_of_quads(%a: tensor<8x8xi32>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{expected sums of i32 for quads, got 'tensor<8x8xf32>' (tile_product_c2)}}
  %0 = posenc.tile_product s8u8_quads ins(%a, %a : tensor<8x8xi32>, tensor<8x8xi32>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

func.func @floats_of_integers(%a: tensor<8x8xf32>, %c: tensor<8x8xi32>) {
  // expected-error @+1 {{expected floats that are not wider than the sums' 'i32', got 'tensor<8x8xf32>' (tile_product_c2)}}
  %0 = posenc.tile_product floats ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) sums(%c : tensor<8x8xi32>)
  return
}

// -----

func.func @f(%a: tensor<4x?xf32>, %b: tensor<?x8xf32>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{expected equal numbers of rows, got 4 and 8 (tile_product_c3)}}
  %0 = posenc.tile_product floats ins(%a, %b : tensor<4x?xf32>, tensor<?x8xf32>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

func.func @f(%a: memref<?x4xf32>, %b: memref<?x16xf32>, %c: vector<4x2x16xf32>) {
  // expected-error @+1 {{expected equal numbers of columns, got 16 and 32 (tile_product_c3)}}
  %0 = posenc.tile_product floats transposed ins(%a, %b : memref<?x4xf32>, memref<?x16xf32>) sums(%c : vector<4x2x16xf32>)
  return
}

// -----

func.func @f(%a: tensor<2x4xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) {
  // expected-error @+1 {{expected equal numbers of depth, got 2 and 4 (tile_product_c3)}}
  %0 = posenc.tile_product floats transposed ins(%a, %b : tensor<2x4xf32>, tensor<4x8xf32>) sums(%c : tensor<4x8xf32>)
  return
}

// -----

func.func @f(%a: memref<8x8xf32>, %c: tensor<8x8xf32>) {
  // expected-error @+1 {{expected tensors only or memrefs only (tile_product_c4)}}
  %0 = posenc.tile_product floats ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) sums(%c : tensor<8x8xf32>)
  return
}

// -----

// Only memory can be loaded to registers.
func.func @f(%a: tensor<8x8xf32>, %c: vector<8x1x8xf32>) {
  // expected-error @+1 {{expected memrefs with sums in a vector (tile_product_c4)}}
  %0 = posenc.tile_product floats ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) sums(%c : vector<8x1x8xf32>)
  return
}

// -----

func.func @f(%a: tensor<8x8xf32>) {
  // expected-error @+1 {{expected a result of the type of the sums, or none if they are a memref (tile_product_c4)}}
  "posenc.tile_product"(%a, %a, %a) <{elements = #posenc<product_elements floats>}> : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return
}

// -----

func.func @f(%a: memref<8x8xf32>) {
  // expected-error @+1 {{expected a result of the type of the sums, or none if they are a memref (tile_product_c4)}}
  %0 = "posenc.tile_product"(%a, %a, %a) <{elements = #posenc<product_elements floats>}> : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%a: tensor<8x8xf32>) {
  // expected-error @+1 {{expected floats, bf16_pairs, f16_pairs, u8s8_quads or s8u8_quads, got 'int8_quads'}}
  %0 = posenc.tile_product int8_quads ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) sums(%a : tensor<8x8xf32>)
  return
}
