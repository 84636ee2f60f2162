//===- bf16.mlir - modules with bf16 arithmetic ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Each operation is rounded to bf16, without calls of libgcc or libm.
// REQUIRES: x86-64-v3
// RUN: rm -rf %t && mkdir %t
// RUN: posenc-compile %s -o %t/libx.so --target=x86-64-v3
// RUN: posenc-run %t/libx.so --function=f --input=9xbf16=1.5 --input=9xbf16=-1 \
// RUN:   --output=@%t/y.npy
// RUN: %python -c "print(open(r'%t/y.npy', 'rb').read()[-18:].hex())" \
// RUN:   | FileCheck %s
// e^1.5 is 4.4817; the nearest bf16 is 4.46875.
// CHECK: {{^}}8f408f408f408f408f408f408f408f408f40{{$}}
#map = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<?xbf16>, %y: tensor<?xbf16>) -> tensor<?xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xbf16>
  %e = tensor.empty(%n) : tensor<?xbf16>
  %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
    ins(%x, %y : tensor<?xbf16>, tensor<?xbf16>) outs(%e : tensor<?xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %s = arith.addf %a, %b : bf16
    %m = arith.maximumf %s, %a : bf16
    %t = math.exp %m : bf16
    linalg.yield %t : bf16
  } -> tensor<?xbf16>
  return %r : tensor<?xbf16>
}
