//===- latent.mlir - absorbed latent attention ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DeepSeek's attention with one latent head: the values are the first 512 channels
// of the keys. It is fused, without a warning.

// RUN: posenc-compile %s -o %t.o --header=%t.h 2>&1 | FileCheck %s --allow-empty --check-prefix=SILENT
// SILENT-NOT: warning
// DEFINE: %{run} = posenc-run %s --reference
// RUN: %{run} --function=prefill --input=2x19x16x576xbf16=random --input=2x43x1x576xbf16=random:seed=2 | FileCheck %s
// RUN: %{run} --function=prefill_f32 --input=1x37x4x576xf32=random --input=1x37x1x576xf32=random:seed=2 | FileCheck %s
// RUN: %{run} --function=decode --input=2x1x128x576xbf16=random --input=2x1x333x576xbf16=random:seed=2 --input=2xi64=300 | FileCheck %s
// RUN: %{run} --function=decode --input=0x1x128x576xbf16=random --input=0x1x3x576xbf16=random --input=0xi64=1 | FileCheck %s --check-prefix=EMPTY
// RUN: %{run} --function=paged --input=2x1x64x64xf32=random --input=5x16x1x64xf32=random:seed=2 --input=2x2xi32=1 --input=2xi64=21 | FileCheck %s
// RUN: %{run} --function=few --input=3x1x16x576xf32=random --input=3x1x77x576xf32=random:seed=2 --input=3xi64=70 | FileCheck %s
// CHECK: result #0: max error {{.*}} rel
// EMPTY: result #0

func.func @prefill(%q: tensor<?x?x16x576xbf16>, %kv: tensor<?x?x1x576xbf16>) -> tensor<?x?x16x512xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %kv, %c0 : tensor<?x?x1x576xbf16>
  %n = tensor.dim %kv, %c1 : tensor<?x?x1x576xbf16>
  %t = tensor.dim %q, %c1 : tensor<?x?x16x576xbf16>
  %v = tensor.extract_slice %kv[0, 0, 0, 0] [%b, %n, 1, 512] [1, 1, 1, 1] : tensor<?x?x1x576xbf16> to tensor<?x?x1x512xbf16>
  %o = tensor.empty(%b, %t) : tensor<?x?x16x512xbf16>
  %r = posenc.attention causal ins(%q, %kv, %v : tensor<?x?x16x576xbf16>, tensor<?x?x1x576xbf16>, tensor<?x?x1x512xbf16>) outs(%o : tensor<?x?x16x512xbf16>)
  return %r : tensor<?x?x16x512xbf16>
}
func.func @prefill_f32(%q: tensor<?x?x4x576xf32>, %kv: tensor<?x?x1x576xf32>) -> tensor<?x?x4x512xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %kv, %c0 : tensor<?x?x1x576xf32>
  %n = tensor.dim %kv, %c1 : tensor<?x?x1x576xf32>
  %t = tensor.dim %q, %c1 : tensor<?x?x4x576xf32>
  %v = tensor.extract_slice %kv[0, 0, 0, 0] [%b, %n, 1, 512] [1, 1, 1, 1] : tensor<?x?x1x576xf32> to tensor<?x?x1x512xf32>
  %o = tensor.empty(%b, %t) : tensor<?x?x4x512xf32>
  %r = posenc.attention causal ins(%q, %kv, %v : tensor<?x?x4x576xf32>, tensor<?x?x1x576xf32>, tensor<?x?x1x512xf32>) outs(%o : tensor<?x?x4x512xf32>)
  return %r : tensor<?x?x4x512xf32>
}
func.func @decode(%q: tensor<?x1x128x576xbf16>, %kv: tensor<?x1x?x576xbf16>, %len: tensor<?xi64>) -> tensor<?x1x128x512xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %kv, %c0 : tensor<?x1x?x576xbf16>
  %n = tensor.dim %kv, %c2 : tensor<?x1x?x576xbf16>
  %v = tensor.extract_slice %kv[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : tensor<?x1x?x576xbf16> to tensor<?x1x?x512xbf16>
  %o = tensor.empty(%b) : tensor<?x1x128x512xbf16>
  %r = posenc.attention key_layout = head_major ins(%q, %kv, %v : tensor<?x1x128x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>) lengths(%len : tensor<?xi64>) outs(%o : tensor<?x1x128x512xbf16>)
  return %r : tensor<?x1x128x512xbf16>
}
func.func @paged(%q: tensor<?x1x64x64xf32>, %k: tensor<?x16x1x64xf32>, %table: tensor<?x?xi32>, %len: tensor<?xi64>) -> tensor<?x1x64x64xf32> {
  %r = posenc.attention causal key_rotation = <pairing = half, frequencies = <dim = 64>> ins(%q, %k, %k : tensor<?x1x64x64xf32>, tensor<?x16x1x64xf32>, tensor<?x16x1x64xf32>)
    lengths(%len : tensor<?xi64>) block_table(%table : tensor<?x?xi32>) outs(%q : tensor<?x1x64x64xf32>)
  return %r : tensor<?x1x64x64xf32>
}
func.func @few(%q: tensor<?x1x16x576xf32>, %kv: tensor<?x1x?x576xf32>, %len: tensor<?xi64>) -> tensor<?x1x16x512xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %kv, %c0 : tensor<?x1x?x576xf32>
  %n = tensor.dim %kv, %c2 : tensor<?x1x?x576xf32>
  %v = tensor.extract_slice %kv[0, 0, 0, 0] [%b, 1, %n, 512] [1, 1, 1, 1] : tensor<?x1x?x576xf32> to tensor<?x1x?x512xf32>
  %o = tensor.empty(%b) : tensor<?x1x16x512xf32>
  %r = posenc.attention key_layout = head_major ins(%q, %kv, %v : tensor<?x1x16x576xf32>, tensor<?x1x?x576xf32>, tensor<?x1x?x512xf32>) lengths(%len : tensor<?xi64>) outs(%o : tensor<?x1x16x512xf32>)
  return %r : tensor<?x1x16x512xf32>
}
