//===- attention-one-token.mlir - explicit position of a single token ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A single query or key with an explicit position in attention that is decomposed:
// f64, a dynamic number of heads, and heads wider than 576.

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference
// RUN: %{run} --function=query --input=3x1x2x8xf64=random \
// RUN:   --input=3x7x2x8xf64=random --input=3x1xi64=random \
// RUN:   --input=3x7xi64=random | FileCheck %s
// RUN: %{run} --function=key --input=3x5x2x8xf64=random \
// RUN:   --input=3x1x2x8xf64=random --input=3x5xi64=random \
// RUN:   --input=3x1xi64=random | FileCheck %s
// RUN: %{run} --function=heads --input=2x1x4x8xf32=random \
// RUN:   --input=2x7x2x8xf32=random --input=2x1xi64=random | FileCheck %s
// RUN: %{run} --function=wide --input=2x1x2x640xf32=random \
// RUN:   --input=2x7x2x640xf32=random --input=2x1xi64=random | FileCheck %s
// CHECK: {{^}}result #0: max error {{[0-9]+\.[0-9][0-9]}} ulp{{.*$}}
// CHECK-NOT: {{.}}

#r8 = #posenc.rotation<pairing = half, frequencies = <dim = 8>>
#r640 = #posenc.rotation<pairing = interleaved, frequencies = <dim = 640>>

func.func @query(%q: tensor<?x1x2x8xf64>, %k: tensor<?x?x2x8xf64>,
                 %p: tensor<?x1xi64>, %kp: tensor<?x?xi64>)
    -> tensor<?x1x2x8xf64> {
  %r = posenc.attention query_rotation = #r8 key_rotation = #r8
    ins(%q, %k, %k : tensor<?x1x2x8xf64>, tensor<?x?x2x8xf64>, tensor<?x?x2x8xf64>)
    query_positions(%p : tensor<?x1xi64>) key_positions(%kp : tensor<?x?xi64>)
    outs(%q : tensor<?x1x2x8xf64>)
  return %r : tensor<?x1x2x8xf64>
}

func.func @key(%q: tensor<?x?x2x8xf64>, %k: tensor<?x1x2x8xf64>,
               %p: tensor<?x?xi64>, %kp: tensor<?x1xi64>)
    -> tensor<?x?x2x8xf64> {
  %r = posenc.attention query_rotation = #r8 key_rotation = #r8
    ins(%q, %k, %k : tensor<?x?x2x8xf64>, tensor<?x1x2x8xf64>, tensor<?x1x2x8xf64>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%kp : tensor<?x1xi64>)
    outs(%q : tensor<?x?x2x8xf64>)
  return %r : tensor<?x?x2x8xf64>
}

func.func @heads(%q: tensor<?x1x?x8xf32>, %k: tensor<?x?x?x8xf32>,
                 %p: tensor<?x1xi64>) -> tensor<?x1x?x8xf32> {
  %r = posenc.attention query_rotation = #r8
    ins(%q, %k, %k : tensor<?x1x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>)
    query_positions(%p : tensor<?x1xi64>) outs(%q : tensor<?x1x?x8xf32>)
  return %r : tensor<?x1x?x8xf32>
}

func.func @wide(%q: tensor<?x1x2x640xf32>, %k: tensor<?x?x2x640xf32>,
                %p: tensor<?x1xi64>) -> tensor<?x1x2x640xf32> {
  %r = posenc.attention query_rotation = #r640
    ins(%q, %k, %k : tensor<?x1x2x640xf32>, tensor<?x?x2x640xf32>, tensor<?x?x2x640xf32>)
    query_positions(%p : tensor<?x1xi64>) outs(%q : tensor<?x1x2x640xf32>)
  return %r : tensor<?x1x2x640xf32>
}
