//===- attention-few.mlir - decode kernels that share a small stack -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The different decode kernels of a function share its stack, so each of them uses
// smaller tiles: fewer key heads, KV splits, heads and keys at a time.

// DEFINE: %{key} = --input=1x2x531x128xf32=random
// RUN: posenc-run %s --reference --input=1x16x8x128xf32=random \
// RUN:   --input=1x16x7x128xf32=random --input=1x16x5x128xf32=random \
// RUN:   %{key} --input=1x531x8x256xbf16=random --input=1x1x32x256xbf16=random \
// RUN:   --input=1x3x8x256xbf16=random --input=1x4x24x256xbf16=random \
// RUN:   --input=24xf32=random | FileCheck %s
// CHECK-COUNT-6: result #{{[0-9]}}: max error

#rotation = #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 256>>
func.func @f(%a: tensor<1x16x8x128xf32>, %b: tensor<1x16x7x128xf32>,
             %c: tensor<1x16x5x128xf32>, %k: tensor<1x2x?x128xf32>,
             %l: tensor<1x?x8x256xbf16>, %d: tensor<1x1x32x256xbf16>,
             %e: tensor<1x3x8x256xbf16>, %g: tensor<1x4x24x256xbf16>,
             %sinks: tensor<24xf32>)
    -> (tensor<1x16x8x128xf32>, tensor<1x16x7x128xf32>,
        tensor<1x16x5x128xf32>, tensor<1x1x32x256xbf16>,
        tensor<1x3x8x256xbf16>, tensor<1x4x24x256xbf16>) {
  %0 = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%a, %k, %k : tensor<1x16x8x128xf32>, tensor<1x2x?x128xf32>, tensor<1x2x?x128xf32>)
    outs(%a : tensor<1x16x8x128xf32>)
  %1 = posenc.attention causal window_left = 300 query_layout = head_major key_layout = head_major
    ins(%b, %k, %k : tensor<1x16x7x128xf32>, tensor<1x2x?x128xf32>, tensor<1x2x?x128xf32>)
    outs(%b : tensor<1x16x7x128xf32>)
  %2 = posenc.attention query_layout = head_major key_layout = head_major
    ins(%c, %k, %k : tensor<1x16x5x128xf32>, tensor<1x2x?x128xf32>, tensor<1x2x?x128xf32>)
    outs(%c : tensor<1x16x5x128xf32>)
  %3 = posenc.attention
    ins(%d, %l, %l : tensor<1x1x32x256xbf16>, tensor<1x?x8x256xbf16>, tensor<1x?x8x256xbf16>)
    outs(%d : tensor<1x1x32x256xbf16>)
  %4 = posenc.attention causal query_rotation = #rotation key_rotation = #rotation
    ins(%e, %l, %l : tensor<1x3x8x256xbf16>, tensor<1x?x8x256xbf16>, tensor<1x?x8x256xbf16>)
    outs(%e : tensor<1x3x8x256xbf16>)
  %5 = posenc.attention causal
    ins(%g, %l, %l : tensor<1x4x24x256xbf16>, tensor<1x?x8x256xbf16>, tensor<1x?x8x256xbf16>)
    sinks(%sinks : tensor<24xf32>)
    outs(%g : tensor<1x4x24x256xbf16>)
  return %0, %1, %2, %3, %4, %5 : tensor<1x16x8x128xf32>, tensor<1x16x7x128xf32>,
    tensor<1x16x5x128xf32>, tensor<1x1x32x256xbf16>,
    tensor<1x3x8x256xbf16>, tensor<1x4x24x256xbf16>
}
