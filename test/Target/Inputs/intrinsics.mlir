//===- intrinsics.mlir - an intrinsic of AVX-512 --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @reciprocals(%x: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0], %z {in_bounds = [true]} : tensor<16xf32>, vector<16xf32>
  %k = arith.constant -1 : i16
  %r = llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"(%v, %v, %k) : (vector<16xf32>, vector<16xf32>, i16) -> vector<16xf32>
  %y = vector.transfer_write %r, %x[%c0] {in_bounds = [true]} : vector<16xf32>, tensor<16xf32>
  return %y : tensor<16xf32>
}
