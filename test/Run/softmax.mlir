//===- softmax.mlir - linalg.softmax ---------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference

// Any dimension and type, and tensors without elements. Results of 16 bits are
// rounded once.
// RUN: %{run} --function=last --input=9x33xf32=random | FileCheck %s
// RUN: %{run} --function=last --input=0x33xf32=random | FileCheck %s
// RUN: %{run} --function=last --input=9x0xf32=random | FileCheck %s
// RUN: %{run} --function=wide --input=1000xf64=random | FileCheck %s
// CHECK: {{^}}result #0: max error {{[0-9]+\.[0-9][0-9]}} ulp{{.*$}}
// CHECK-NOT: {{.}}
// RUN: %{run} --function=first --input=5x7xf16=random \
// RUN:   | FileCheck %s --check-prefix=HALF
// RUN: %{run} --function=middle --input=3x5x40xbf16=random \
// RUN:   | FileCheck %s --check-prefix=HALF
// HALF: {{^}}result #0: max error 0.{{[0-5][0-9]}} ulp

// A row of minus infinity is NaN, since the shift by its maximum is undefined.
// RUN: %{run} --function=last --input=2x4xf32=-inf --output=@%t.npy \
// RUN:   | FileCheck %s
// RUN: %python -c "import struct; x = open(r'%t.npy', 'rb').read()[-32:]; \
// RUN:   assert all(v != v for v in struct.unpack('<8f', x))"

// The softmax of a rotated tensor.
// RUN: %{run} --function=rotated --input=9x4x16xf32=random \
// RUN:   --input=9xi64=random | FileCheck %s

func.func @last(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>)
    outs(%x : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

func.func @first(%x: tensor<5x7xf16>) -> tensor<5x7xf16> {
  %e = tensor.empty() : tensor<5x7xf16>
  %r = linalg.softmax dimension(0) ins(%x : tensor<5x7xf16>)
    outs(%e : tensor<5x7xf16>) -> tensor<5x7xf16>
  return %r : tensor<5x7xf16>
}

func.func @middle(%x: tensor<?x5x?xbf16>) -> tensor<?x5x?xbf16> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x5x?xbf16>)
    outs(%x : tensor<?x5x?xbf16>) -> tensor<?x5x?xbf16>
  return %r : tensor<?x5x?xbf16>
}

func.func @wide(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.softmax dimension(0) ins(%x : tensor<?xf64>)
    outs(%x : tensor<?xf64>) -> tensor<?xf64>
  return %r : tensor<?xf64>
}

func.func @rotated(%x: tensor<?x4x16xf32>, %p: tensor<?xi64>)
    -> tensor<?x4x16xf32> {
  %r = posenc.rope half <dim = 16> ins(%x : tensor<?x4x16xf32>)
    positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x16xf32>)
  %s = linalg.softmax dimension(2) ins(%r : tensor<?x4x16xf32>)
    outs(%x : tensor<?x4x16xf32>) -> tensor<?x4x16xf32>
  return %s : tensor<?x4x16xf32>
}
