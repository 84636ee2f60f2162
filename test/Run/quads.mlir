//===- quads.mlir - products of words of four bytes by every unit ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: numpy
// RUN: rm -rf %t && mkdir %t && %numpy_python -B %S/Inputs/quads.py %t
// RUN: posenc-compile %s --target=x86-64-v3 --opt-level=0 -o %t/libportable.so
// RUN: posenc-compile %s --target=sapphirerapids --emit=vector -o %t/tiles.mlir
// RUN: FileCheck %s --input-file=%t/tiles.mlir --check-prefix=TILES
// RUN: posenc-compile %t/tiles.mlir --target=x86-64-v3 --opt-level=0 -o %t/libtiles.so
// RUN: posenc-compile %s --target=cascadelake --emit=vector -o %t/bytes.mlir
// RUN: FileCheck %s --input-file=%t/bytes.mlir --check-prefix=BYTES
// RUN: posenc-compile %t/bytes.mlir --target=x86-64-v3 --opt-level=0 -o %t/libbytes.so
// TILES: amx.tile_muli %{{.*}} zext, %
// TILES: amx.tile_muli %{{.*}}, %{{.*}} zext, %
// BYTES: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"

// Sums wrap around, and are the same for all units. The largest bytes would saturate
// sums of two products in 16 bits. At the vector stage, the modules run on every CPU.
// DEFINE: %{function} = u8s8_quads
// DEFINE: %{inputs} = --input=@%t/a.npy --input=@%t/b.npy --input=@%t/s.npy
// DEFINE: %{expect} = --expected_output=@%t/us.npy
// DEFINE: %{run} = --function=%{function} %{inputs} %{expect}
// DEFINE: %{check} = posenc-run %t/libportable.so %{run} && posenc-run %t/libtiles.so %{run} \
// DEFINE:   && posenc-run %t/libbytes.so %{run} && posenc-run %s %{run}
// RUN: %{check}
// REDEFINE: %{function} = s8u8_quads
// REDEFINE: %{expect} = --expected_output=@%t/su.npy
// RUN: %{check}

// Control: bytes of the other signedness.
// REDEFINE: %{expect} = --expected_output=@%t/us.npy
// RUN: not posenc-run %t/libportable.so %{run}
// RUN: not posenc-run %t/libtiles.so %{run}
// RUN: not posenc-run %t/libbytes.so %{run}

func.func @u8s8_quads(%a: tensor<32x16xi32>, %b: tensor<16x32xi32>, %c: tensor<32x32xi32>) -> tensor<32x32xi32> {
  %0 = posenc.tile_product u8s8_quads ins(%a, %b : tensor<32x16xi32>, tensor<16x32xi32>) sums(%c : tensor<32x32xi32>)
  return %0 : tensor<32x32xi32>
}

func.func @s8u8_quads(%a: tensor<32x16xi32>, %b: tensor<16x32xi32>, %c: tensor<32x32xi32>) -> tensor<32x32xi32> {
  %0 = posenc.tile_product s8u8_quads ins(%a, %b : tensor<32x16xi32>, tensor<16x32xi32>) sums(%c : tensor<32x32xi32>)
  return %0 : tensor<32x32xi32>
}
