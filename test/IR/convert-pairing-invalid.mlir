//===- convert-pairing-invalid.mlir - constraints of convert_pairing ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --verify-diagnostics

func.func @dynamic(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error @+1 {{'posenc.convert_pairing' op expected a static last dimension with the lanes 0 to 0 + 8, got 'tensor<4x?xf32>' (convert_pairing_c1)}}
  %r = posenc.convert_pairing half to interleaved dim = 8 %x : tensor<4x?xf32>
  return %r : tensor<4x?xf32>
}

// -----

func.func @window(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  // expected-error @+1 {{expected a static last dimension with the lanes 3 to 3 + 8, got 'tensor<4x10xf32>' (convert_pairing_c1)}}
  %r = posenc.convert_pairing half to interleaved dim = 8 offset = 3 %x : tensor<4x10xf32>
  return %r : tensor<4x10xf32>
}

// -----

func.func @negative(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  // expected-error @+1 {{with the lanes -1 to -1 + 8, got 'tensor<4x10xf32>' (convert_pairing_c1)}}
  %r = posenc.convert_pairing half to interleaved dim = 8 offset = -1 %x : tensor<4x10xf32>
  return %r : tensor<4x10xf32>
}

// -----

func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{got 'tensor<f32>' (convert_pairing_c1)}}
  %r = posenc.convert_pairing half to interleaved dim = 2 %x : tensor<f32>
  return %r : tensor<f32>
}

// -----

func.func @odd(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  // expected-error @+1 {{expected an even and positive dim, got 9 (convert_pairing_c2)}}
  %r = posenc.convert_pairing half to interleaved dim = 9 %x : tensor<4x9xf32>
  return %r : tensor<4x9xf32>
}

// -----

func.func @none(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  // expected-error @+1 {{expected an even and positive dim, got 0 (convert_pairing_c2)}}
  %r = posenc.convert_pairing half to interleaved dim = 0 %x : tensor<4x9xf32>
  return %r : tensor<4x9xf32>
}
