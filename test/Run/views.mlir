//===- views.mlir - slices with strides -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference

// The source is strided, or the destination, both, or the positions.
// RUN: %{run} --function=source --input=4x6x16xf32=random --input=4xi64=random \
// RUN:   | FileCheck %s
// RUN: %{run} --function=destination --input=4x6x8xf32=random \
// RUN:   --input=4xi64=random --input=4x6x16xf32=random | FileCheck %s
// RUN: %{run} --function=both --input=4x6x16xbf16=random --input=8xi64=random \
// RUN:   --input=4x6x16xbf16=random | FileCheck %s
// RUN: %{run} --function=column --input=5x8x3xf32=random --input=5xi64=random \
// RUN:   | FileCheck %s
// RUN: %{run} --function=rotate --input=4x16xf32=random --input=4x8xf32=random \
// RUN:   --input=4x8xf32=random | FileCheck %s
// RUN: %{run} --function=attention --input=2x5x2x16xf32=random \
// RUN:   --input=2x5x2x8xf32=random | FileCheck %s
// CHECK: {{^}}result #0: max error {{[0-9]+\.[0-9][0-9]}} ulp{{.*$}}
// CHECK-NOT: {{.}}

func.func @source(%x: tensor<?x6x16xf32>, %p: tensor<?xi64>)
    -> tensor<?x6x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6x16xf32>
  %s = tensor.extract_slice %x[0, 0, 1] [%n, 6, 8] [1, 1, 2]
    : tensor<?x6x16xf32> to tensor<?x6x8xf32>
  %e = tensor.empty(%n) : tensor<?x6x8xf32>
  %r = posenc.rope half <dim = 8, base = 10000.0>
    ins(%s : tensor<?x6x8xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%e : tensor<?x6x8xf32>)
  return %r : tensor<?x6x8xf32>
}

func.func @destination(%x: tensor<4x6x8xf32>, %p: tensor<4xi64>,
                       %o: tensor<4x6x16xf32>) -> tensor<4x6x16xf32> {
  %s = tensor.extract_slice %o[0, 0, 0] [4, 6, 8] [1, 1, 2]
    : tensor<4x6x16xf32> to tensor<4x6x8xf32>
  %r = posenc.rope interleaved <dim = 8, base = 10000.0>
    ins(%x : tensor<4x6x8xf32>) positions(%p : tensor<4xi64>) dims = [0]
    outs(%s : tensor<4x6x8xf32>)
  %i = tensor.insert_slice %r into %o[0, 0, 0] [4, 6, 8] [1, 1, 2]
    : tensor<4x6x8xf32> into tensor<4x6x16xf32>
  return %i : tensor<4x6x16xf32>
}

func.func @both(%x: tensor<4x6x16xbf16>, %p: tensor<8xi64>,
                %o: tensor<4x6x16xbf16>) -> tensor<4x6x16xbf16> {
  %s = tensor.extract_slice %x[0, 0, 0] [4, 6, 8] [1, 1, 2]
    : tensor<4x6x16xbf16> to tensor<4x6x8xbf16>
  %q = tensor.extract_slice %p[1] [4] [2] : tensor<8xi64> to tensor<4xi64>
  %r = posenc.rope half <dim = 8, base = 10000.0>
    ins(%s : tensor<4x6x8xbf16>) positions(%q : tensor<4xi64>) dims = [0]
    outs(%s : tensor<4x6x8xbf16>)
  %i = tensor.insert_slice %r into %x[0, 0, 0] [4, 6, 8] [1, 1, 2]
    : tensor<4x6x8xbf16> into tensor<4x6x16xbf16>
  return %i : tensor<4x6x16xbf16>
}

// The slice drops the last dimension.
func.func @column(%x: tensor<5x8x3xf32>, %p: tensor<5xi64>)
    -> tensor<5x8xf32> {
  %s = tensor.extract_slice %x[0, 0, 2] [5, 8, 1] [1, 1, 1]
    : tensor<5x8x3xf32> to tensor<5x8xf32>
  %e = tensor.empty() : tensor<5x8xf32>
  %r = posenc.rope half <dim = 8, base = 10000.0>
    ins(%s : tensor<5x8xf32>) positions(%p : tensor<5xi64>) dims = [0]
    outs(%e : tensor<5x8xf32>)
  return %r : tensor<5x8xf32>
}

func.func @rotate(%x: tensor<4x16xf32>, %cos: tensor<4x8xf32>,
                  %sin: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[0, 0] [4, 8] [1, 2]
    : tensor<4x16xf32> to tensor<4x8xf32>
  %c = tensor.extract_slice %cos[0, 0] [4, 4] [1, 2]
    : tensor<4x8xf32> to tensor<4x4xf32>
  %t = tensor.extract_slice %sin[0, 0] [4, 4] [1, 2]
    : tensor<4x8xf32> to tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = posenc.rotate half ins(%s : tensor<4x8xf32>)
    tables(%c, %t : tensor<4x4xf32>)
    dims = [0] outs(%e : tensor<4x8xf32>)
  return %r : tensor<4x8xf32>
}

func.func @attention(%q: tensor<2x5x2x16xf32>, %k: tensor<2x5x2x8xf32>)
    -> tensor<2x5x2x8xf32> {
  %s = tensor.extract_slice %q[0, 0, 0, 0] [2, 5, 2, 8] [1, 1, 1, 2]
    : tensor<2x5x2x16xf32> to tensor<2x5x2x8xf32>
  %e = tensor.empty() : tensor<2x5x2x8xf32>
  %r = posenc.attention causal
    ins(%s, %k, %s : tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>)
    outs(%e : tensor<2x5x2x8xf32>)
  return %r : tensor<2x5x2x8xf32>
}
