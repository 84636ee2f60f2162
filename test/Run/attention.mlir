//===- attention.mlir - attention on the reference ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{exits} = %python %posenc_src/test/Inputs/exits.py
// DEFINE: %{run} = posenc-run %s --reference

// RUN: %{run} --function=causal --input=2x9x4x16xf32=random \
// RUN:   --input=2x9x2x16xf32=random --input=2x9x2x16xf32=random \
// RUN:   --input=2x9xi64=iota | FileCheck %s
// RUN: %{run} --function=regions --input=1x5x6x8xf32=random \
// RUN:   --input=1x11x6x8xf32=random --input=11xi32=1 \
// RUN:   --input=32x6xf32=random | FileCheck %s
// RUN: %{run} --function=far --input=1x16x2x8xf32=random | FileCheck %s
// CHECK: {{^}}result #0: max error {{[0-9]+\.[0-9][0-9]}} ulp (abs {{[0-9]}}.{{[0-9]}}e-{{[0-9]+}}) at [{{[0-9]+,[0-9]+,[0-9]+,[0-9]+}}] rel {{[0-9]\.[0-9]e-[0-9]+$}}
// CHECK-NOT: {{.}}

// For 16-bit types, only the result is rounded, and bf16 weights on some targets.
// RUN: %{run} --function=cached --input=2x1x4x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2xi64=13 | FileCheck %s
// Without keys, the result is zero.
// RUN: %{run} --function=cached --input=2x1x4x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2xi64=0 | FileCheck %s --check-prefix=ZERO
// ZERO: result #0: max error 0.00 ulp (abs 0.0e+00) at [0,0,0,0] rel 0.0e+00{{$}}

func.func @causal(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf32>,
                  %v: tensor<?x?x2x16xf32>, %p: tensor<?x?xi64>)
    -> tensor<?x?x4x16xf32> {
  %r = posenc.attention causal window_left = 3
    query_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 16>>
    key_rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 16>>
    ins(%q, %k, %v : tensor<?x?x4x16xf32>, tensor<?x?x2x16xf32>,
                     tensor<?x?x2x16xf32>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x4x16xf32>)
  return %r : tensor<?x?x4x16xf32>
}

func.func @regions(%q: tensor<?x?x6x8xf32>, %k: tensor<?x?x6x8xf32>,
                   %document: tensor<?xi32>, %table: tensor<32x6xf32>)
    -> tensor<?x?x6x8xf32> {
  %cap = arith.constant 20.0 : f32
  %r = posenc.attention
    ins(%q, %k, %k : tensor<?x?x6x8xf32>, tensor<?x?x6x8xf32>,
                     tensor<?x?x6x8xf32>)
    outs(%q : tensor<?x?x6x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %capped = arith.mulf %t, %cap : f32
      %alibi = posenc.alibi(%h, %i, %j) heads = 6 : f32
      %relative = arith.subi %j, %i : index
      %bucket = posenc.t5_bucket bidirectional %relative : index
      %bias = tensor.extract %table[%bucket, %h] : tensor<32x6xf32>
      %0 = arith.addf %capped, %alibi : f32
      %y = arith.addf %0, %bias : f32
      posenc.yield %y : f32
    }
    where(%b, %h, %i, %j) {
      %x = tensor.extract %document[%i] : tensor<?xi32>
      %y = tensor.extract %document[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      posenc.yield %same : i1
    }
  return %r : tensor<?x?x6x8xf32>
}

// Indices that are more than 2^31 apart.
func.func @far(%q: tensor<1x16x2x8xf32>) -> tensor<1x16x2x8xf32> {
  %r = posenc.attention
    ins(%q, %q, %q : tensor<1x16x2x8xf32>, tensor<1x16x2x8xf32>,
                     tensor<1x16x2x8xf32>)
    outs(%q : tensor<1x16x2x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %stride = arith.constant 2147483648 : index
      %query = arith.muli %i, %stride : index
      %key = arith.muli %j, %stride : index
      %alibi = posenc.alibi(%h, %query, %key) heads = 2 : f32
      %scale = arith.constant 1.0e-09 : f32
      %bias = arith.mulf %alibi, %scale : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
  return %r : tensor<1x16x2x8xf32>
}

func.func @cached(%q: tensor<?x1x4x8xbf16>, %k: tensor<?x2x?x8xbf16>,
                  %v: tensor<?x2x?x8xbf16>, %n: tensor<?xi64>)
    -> tensor<?x1x4x8xbf16> {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x8xbf16>, tensor<?x2x?x8xbf16>,
                     tensor<?x2x?x8xbf16>)
    lengths(%n : tensor<?xi64>) outs(%q : tensor<?x1x4x8xbf16>)
  return %r : tensor<?x1x4x8xbf16>
}

// New rows of caches: rotated keys, and values copied bit by bit.
// RUN: %{run} --function=append --input=2x3x2x8xf16=random \
// RUN:   --input=2x3x2x8xf16=random --input=2xi64=5 --input=2x2x9x8xf16=random \
// RUN:   --input=2x2x9x8xf16=random | FileCheck %s --check-prefix=APPEND
// APPEND: {{^}}result #0: max error 0.{{[0-9]+}} ulp (abs {{.*}}) at [{{.*}}]{{$}}
// APPEND: {{^}}result #1: max error 0.00 ulp (abs 0.0e+00) at [0,0,0,0]{{$}}
func.func @append(%k: tensor<?x?x2x8xf16>, %v: tensor<?x?x2x8xf16>,
                  %n: tensor<?xi64>, %kc: tensor<?x2x?x8xf16>,
                  %vc: tensor<?x2x?x8xf16>)
    -> (tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 8>>
    ins(%k, %v : tensor<?x?x2x8xf16>, tensor<?x?x2x8xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>)
  return %r#0, %r#1 : tensor<?x2x?x8xf16>, tensor<?x2x?x8xf16>
}

// --max-rel replaces the default limit of the relative error.
// RUN: %{exits} 3 %{run} --function=cached --input=2x1x4x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2xi64=13 --max-rel=1e-6 2>&1 | FileCheck %s --check-prefix=REL
// REL: error: result #0: the relative error is {{.*}}; the limit is 1e-06

// A result is within its own limits; that of another input is not.
// RUN: rm -rf %t && mkdir %t
// RUN: posenc-run %s --function=cached --input=2x1x4x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2xi64=13 --output=@%t/o.npy
// RUN: posenc-run %s --function=cached --input=2x1x4x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2xi64=13 --expected_output=@%t/o.npy \
// RUN:   | FileCheck %s --check-prefix=ZERO
// RUN: %{exits} 3 posenc-run %s --function=cached \
// RUN:   --input=2x1x4x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2xi64=12 \
// RUN:   --expected_output=@%t/o.npy

// The metadata of a library does not tell what its functions compute, but this one
// looks like attention.
// RUN: posenc-compile %s --kernels=cached -o %t/libx.so
// RUN: posenc-run %t/libx.so --function=cached --input=2x1x4x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2xi64=13 --expected_output=@%t/o.npy \
// RUN:   | FileCheck %s --check-prefix=ZERO
// RUN: %{exits} 3 posenc-run %t/libx.so --function=cached \
// RUN:   --input=2x1x4x8xbf16=random --input=2x2x20x8xbf16=random \
// RUN:   --input=2x2x20x8xbf16=random --input=2xi64=12 \
// RUN:   --expected_output=@%t/o.npy | FileCheck %s --check-prefix=FOREIGN
// FOREIGN: result #0: max error {{.*}} rel {{[0-9.e+-]+$}}

// Results of preceding rotations are rounded to their type.
// RUN: %{run} --function=apart --input=1x9x2x16xbf16=random \
// RUN:   --input=9xi64=random
func.func @apart(%x: tensor<1x?x2x16xbf16>, %p: tensor<?xi64>)
    -> tensor<1x?x2x16xbf16> {
  %k = posenc.rope half #posenc.frequencies<dim = 16>
    ins(%x : tensor<1x?x2x16xbf16>) positions(%p : tensor<?xi64>) dims = [1]
    outs(%x : tensor<1x?x2x16xbf16>)
  %r = posenc.attention causal
    ins(%k, %k, %x : tensor<1x?x2x16xbf16>, tensor<1x?x2x16xbf16>,
                     tensor<1x?x2x16xbf16>)
    outs(%x : tensor<1x?x2x16xbf16>)
  return %r : tensor<1x?x2x16xbf16>
}

// Boolean and additive masks, and the log-sum-exp.
// RUN: %{run} --function=masked --input=1x3x2x8xf32=random \
// RUN:   --input=1x1x3x3xf32=random | FileCheck %s --check-prefix=MASKED
// MASKED: {{^}}result #0: max error {{.*}} rel
// MASKED: {{^}}result #1: max error {{.*}} ulp (abs {{[0-9.]+}}e-{{[0-9]+}}) at [0,{{[0-2]}},{{[01]}}]{{$}}
func.func @masked(%x: tensor<1x3x2x8xf32>, %m: tensor<1x1x3x3xf32>)
    -> (tensor<1x3x2x8xf32>, tensor<1x3x2xf32>) {
  %bits = arith.constant dense<[[[[true, false, true], [true, true, false],
                                  [false, false, false]]]]>
    : tensor<1x1x3x3xi1>
  %v = posenc.attention
    ins(%x, %x, %x : tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>,
                     tensor<1x3x2x8xf32>)
    mask(%bits : tensor<1x1x3x3xi1>) outs(%x : tensor<1x3x2x8xf32>)
  %e = tensor.empty() : tensor<1x3x2xf32>
  %r:2 = posenc.attention
    ins(%x, %x, %x : tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>,
                     tensor<1x3x2x8xf32>)
    mask(%m : tensor<1x1x3x3xf32>)
    outs(%x, %e : tensor<1x3x2x8xf32>, tensor<1x3x2xf32>)
  return %v, %r#1 : tensor<1x3x2x8xf32>, tensor<1x3x2xf32>
}

// A region reads only within its tensors; otherwise entry points reject the sizes.
// RUN: %{exits} 1 %{run} --function=outside --input=1x2x1x8xf32=random \
// RUN:   --input=2xf32=1 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: {{^}}error: outside: dimension 1 of q * 2 is 4, expected at most 3
func.func @outside(%q: tensor<?x?x1x8xf32>, %t: tensor<2xf32>)
    -> tensor<?x?x1x8xf32> {
  %r = posenc.attention
    ins(%q, %q, %q : tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32>,
                     tensor<?x?x1x8xf32>)
    outs(%q : tensor<?x?x1x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %n = arith.addi %i, %j : index
      %y = tensor.extract %t[%n] : tensor<2xf32>
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x1x8xf32>
}

// A static batch of no sequences: no loop is left, but the workspace is asked for.
// RUN: posenc-run %s --function=no_batch --input=0x3x5x8xf32=1 --input=0x7x3x8xf32=1 \
// RUN:   | FileCheck %s --check-prefix=NOBATCH
// NOBATCH: result #0: {{.*}}0x3x5x8xf32
// NOBATCH: result #1: {{.*}}0x3x5xf32
func.func @no_batch(%q: tensor<0x3x?x8xf32>, %k: tensor<0x7x3x8xf32>)
    -> (tensor<0x3x?x8xf32>, tensor<0x3x?xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : tensor<0x3x?x8xf32>
  %t = math.tanh %q : tensor<0x3x?x8xf32>
  %e = tensor.empty(%n) : tensor<0x3x?xf32>
  %r:2 = posenc.attention query_layout = head_major
    ins(%t, %k, %k : tensor<0x3x?x8xf32>, tensor<0x7x3x8xf32>,
                     tensor<0x7x3x8xf32>)
    outs(%q, %e : tensor<0x3x?x8xf32>, tensor<0x3x?xf32>)
  return %r#0, %r#1 : tensor<0x3x?x8xf32>, tensor<0x3x?xf32>
}
