//===- sinks.mlir - rows that see only an attention sink ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The log-sum-exp of a row without keys is exactly its sink: in the prefill kernel, in
// the decode kernel with one or more queries, with KV splits, and if attention is
// decomposed.

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference
// RUN: %{run} --function=many --input=2x19x8x64xf32=random \
// RUN:   --input=2x5x2x64xf32=random --input=2xi64=0 \
// RUN:   --input=8xf32=random --input=2x19x8xf32=0 | FileCheck %s
// RUN: %{run} --function=one --input=2x1x8x64xbf16=random \
// RUN:   --input=2x5x2x64xbf16=random --input=2xi64=0 \
// RUN:   --input=8xf32=random --input=2x1x8xf32=0 | FileCheck %s
// RUN: %{run} --function=one --input=2x1x8x64xbf16=random \
// RUN:   --input=2x3000x2x64xbf16=random --input=2xi64=0 \
// RUN:   --input=8xf32=random --input=2x1x8xf32=0 | FileCheck %s
// RUN: %{run} --function=few --input=2x4x8x64xf32=random \
// RUN:   --input=2x5x2x64xf32=random --input=2xi64=0 \
// RUN:   --input=8xf32=random --input=2x4x8xf32=0 | FileCheck %s
// RUN: %{run} --function=double --input=2x3x8x8xf64=random \
// RUN:   --input=2x5x2x8xf64=random --input=2xi64=0 \
// RUN:   --input=8xf64=random --input=2x3x8xf64=0 | FileCheck %s
// RUN: %{run} --function=wide --input=2x3x8x640xf32=random \
// RUN:   --input=2x5x2x640xf32=random --input=2xi64=0 \
// RUN:   --input=8xf32=random --input=2x3x8xf32=0 | FileCheck %s
// CHECK: {{^}}result #0: max error 0.00 ulp
// CHECK-NEXT: {{^}}result #1: max error 0.00 ulp (abs 0.0e+00){{.*$}}
// CHECK-NOT: {{.}}

// This includes sinks whose logarithm to base 2 overflows.
// RUN: %{run} --function=many --input=2x19x8x64xf32=random \
// RUN:   --input=2x5x2x64xf32=random --input=2xi64=0 --input=8xf32=-3.2e38 \
// RUN:   --input=2x19x8xf32=0 | FileCheck %s
// RUN: %{run} --function=one --input=2x1x8x64xbf16=random \
// RUN:   --input=2x5x2x64xbf16=random --input=2xi64=0 --input=8xf32=3.2e38 \
// RUN:   --input=2x1x8xf32=0 | FileCheck %s

func.func @many(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>,
    %n: tensor<?xi64>, %s: tensor<8xf32>, %l: tensor<?x?x8xf32>)
    -> (tensor<?x?x8x64xf32>, tensor<?x?x8xf32>) {
  %r:2 = posenc.attention
    ins(%q, %k, %k : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    lengths(%n : tensor<?xi64>) sinks(%s : tensor<8xf32>)
    outs(%q, %l : tensor<?x?x8x64xf32>, tensor<?x?x8xf32>)
  return %r#0, %r#1 : tensor<?x?x8x64xf32>, tensor<?x?x8xf32>
}

func.func @one(%q: tensor<?x1x8x64xbf16>, %k: tensor<?x?x2x64xbf16>,
    %n: tensor<?xi64>, %s: tensor<8xf32>, %l: tensor<?x1x8xf32>)
    -> (tensor<?x1x8x64xbf16>, tensor<?x1x8xf32>) {
  %r:2 = posenc.attention
    ins(%q, %k, %k : tensor<?x1x8x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    lengths(%n : tensor<?xi64>) sinks(%s : tensor<8xf32>)
    outs(%q, %l : tensor<?x1x8x64xbf16>, tensor<?x1x8xf32>)
  return %r#0, %r#1 : tensor<?x1x8x64xbf16>, tensor<?x1x8xf32>
}

func.func @few(%q: tensor<?x4x8x64xf32>, %k: tensor<?x?x2x64xf32>,
    %n: tensor<?xi64>, %s: tensor<8xf32>, %l: tensor<?x4x8xf32>)
    -> (tensor<?x4x8x64xf32>, tensor<?x4x8xf32>) {
  %r:2 = posenc.attention
    ins(%q, %k, %k : tensor<?x4x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    lengths(%n : tensor<?xi64>) sinks(%s : tensor<8xf32>)
    outs(%q, %l : tensor<?x4x8x64xf32>, tensor<?x4x8xf32>)
  return %r#0, %r#1 : tensor<?x4x8x64xf32>, tensor<?x4x8xf32>
}

func.func @double(%q: tensor<?x?x8x8xf64>, %k: tensor<?x?x2x8xf64>,
    %n: tensor<?xi64>, %s: tensor<8xf64>, %l: tensor<?x?x8xf64>)
    -> (tensor<?x?x8x8xf64>, tensor<?x?x8xf64>) {
  %r:2 = posenc.attention
    ins(%q, %k, %k : tensor<?x?x8x8xf64>, tensor<?x?x2x8xf64>, tensor<?x?x2x8xf64>)
    lengths(%n : tensor<?xi64>) sinks(%s : tensor<8xf64>)
    outs(%q, %l : tensor<?x?x8x8xf64>, tensor<?x?x8xf64>)
  return %r#0, %r#1 : tensor<?x?x8x8xf64>, tensor<?x?x8xf64>
}

func.func @wide(%q: tensor<?x?x8x640xf32>, %k: tensor<?x?x2x640xf32>,
    %n: tensor<?xi64>, %s: tensor<8xf32>, %l: tensor<?x?x8xf32>)
    -> (tensor<?x?x8x640xf32>, tensor<?x?x8xf32>) {
  %r:2 = posenc.attention
    ins(%q, %k, %k : tensor<?x?x8x640xf32>, tensor<?x?x2x640xf32>, tensor<?x?x2x640xf32>)
    lengths(%n : tensor<?xi64>) sinks(%s : tensor<8xf32>)
    outs(%q, %l : tensor<?x?x8x640xf32>, tensor<?x?x8xf32>)
  return %r#0, %r#1 : tensor<?x?x8x640xf32>, tensor<?x?x8xf32>
}
