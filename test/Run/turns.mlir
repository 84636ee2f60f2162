//===- turns.mlir - frequencies that are known at run time ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The oracle takes the length, or the given numbers, and computes exactly.
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=100 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=100 --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_longrope --input=100 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_longrope --input=100 --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=4097 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=4097 --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_longrope --input=4097 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_longrope --input=4097 --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=131072 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=131072 --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_longrope --input=131072 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_longrope --input=131072 --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_f64 --input=131072 --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=F64
// RUN: posenc-run %s --opt-level=0 --function=table_learned --input=16xf32=random --input=257xi64=random:seed=3 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_learned --input=16xf32=random --input=3xi64=2147483647 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=table_learned --input=16xf32=1e30 --input=3xi64=5 --reference | FileCheck %s --check-prefix=TABLE
// RUN: posenc-run %s --opt-level=0 --function=rope_f32 --input=16384 --input=5x4x64xf32=random:seed=1 --input=5xi64=random:seed=3 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=rope_bf16 --input=16384 --input=5x4x64xbf16=random:seed=1 --input=5xi64=random:seed=3 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=rope_f64 --input=16384 --input=5x4x64xf64=random:seed=1 --input=5xi64=random:seed=3 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=rope_pairs --input=16384 --input=5x4x64xf32=random:seed=1 --input=5xi64=random:seed=3 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=rope_inverse --input=16384 --input=5x4x64xf32=random:seed=1 --input=5xi64=random:seed=3 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=rope_axes --input=16384 --input=5x4x64xf32=random:seed=1 --input=2x5xi64=random:seed=3 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=attention_f32 --input=16384 --input=2x37x4x64xf32=random:seed=1 --input=2x37x2x64xf32=random:seed=2 --input=2x37xi64=iota --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=decode_f32 --input=2xi64=33 --input=2x1x4x64xf32=random:seed=1 --input=2x2x40x64xf32=random:seed=2 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=append_f32 --input=2xi64=33 --input=2x5x2x64xf32=random:seed=1 --input=2x2x40x64xf32=random:seed=2 --input=2x2x40x64xf32=random:seed=4 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=attention_bf16 --input=16384 --input=2x37x4x64xbf16=random:seed=1 --input=2x37x2x64xbf16=random:seed=2 --input=2x37xi64=iota --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=decode_bf16 --input=2xi64=33 --input=2x1x4x64xbf16=random:seed=1 --input=2x2x40x64xbf16=random:seed=2 --reference | FileCheck %s --check-prefix=ROPE
// RUN: posenc-run %s --opt-level=0 --function=append_bf16 --input=2xi64=33 --input=2x5x2x64xbf16=random:seed=1 --input=2x2x40x64xbf16=random:seed=2 --input=2x2x40x64xbf16=random:seed=4 --reference | FileCheck %s --check-prefix=ROPE

// TABLE: result #0: max error {{0\.[0-9]+|1\.[0-9]+}} ulp
// TABLE: result #1: max error {{0\.[0-9]+|1\.[0-9]+}} ulp
// F64: result #1: max error {{[01]\.[0-9]+}} ulp
// ROPE: result #0:

// A wrong length is noticed.
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=16384 --input=9xi64=iota --output=@%t.cos.npy --output=@%t.sin.npy
// RUN: posenc-run %s --opt-level=0 --function=table_dynamic --input=16384 --input=9xi64=iota --expected_output=@%t.cos.npy --expected_output=@%t.sin.npy
// RUN: not posenc-run %s --opt-level=0 --function=table_dynamic --input=16399 --input=9xi64=iota --expected_output=@%t.cos.npy --expected_output=@%t.sin.npy

#dynamic = #posenc.frequencies<dim = 64, scaling = #posenc.dynamic<factor = 2, max_position = 4096>>
#longrope = #posenc.frequencies<dim = 16, scaling = #posenc.longrope<short_factors = [1, 1, 1, 1, 1, 1, 1, 1], long_factors = [1, 1.1, 1.5, 2, 4, 8, 16, 64], original_max_position = 4096, factor = 32>>
#plain = #posenc.frequencies<dim = 32>

func.func @table_dynamic(%n: i64, %p: tensor<?xi64>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %p, %c0 : tensor<?xi64>
  %c = tensor.empty(%size) : tensor<?x32xf32>
  %s = tensor.empty(%size) : tensor<?x32xf32>
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r:2 = posenc.sincos #dynamic positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%c, %s : tensor<?x32xf32>, tensor<?x32xf32>)
  return %r#0, %r#1 : tensor<?x32xf32>, tensor<?x32xf32>
}

func.func @table_longrope(%n: i64, %p: tensor<?xi64>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %p, %c0 : tensor<?xi64>
  %c = tensor.empty(%size) : tensor<?x8xf32>
  %s = tensor.empty(%size) : tensor<?x8xf32>
  %high, %low = posenc.turns #longrope length(%n : i64)
  %r:2 = posenc.sincos #longrope positions(%p : tensor<?xi64>) turns(%high, %low : tensor<8xi64>, tensor<8xi64>)
    outs(%c, %s : tensor<?x8xf32>, tensor<?x8xf32>)
  return %r#0, %r#1 : tensor<?x8xf32>, tensor<?x8xf32>
}

func.func @table_f64(%n: i64, %p: tensor<?xi64>) -> (tensor<?x32xf64>, tensor<?x32xf64>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %p, %c0 : tensor<?xi64>
  %c = tensor.empty(%size) : tensor<?x32xf64>
  %s = tensor.empty(%size) : tensor<?x32xf64>
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r:2 = posenc.sincos #dynamic positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%c, %s : tensor<?x32xf64>, tensor<?x32xf64>)
  return %r#0, %r#1 : tensor<?x32xf64>, tensor<?x32xf64>
}

func.func @table_learned(%f: tensor<16xf32>, %p: tensor<?xi64>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %p, %c0 : tensor<?xi64>
  %c = tensor.empty(%size) : tensor<?x16xf32>
  %s = tensor.empty(%size) : tensor<?x16xf32>
  %high, %low = posenc.turns values(%f : tensor<16xf32>)
  %r:2 = posenc.sincos #plain positions(%p : tensor<?xi64>) turns(%high, %low : tensor<16xi64>, tensor<16xi64>)
    outs(%c, %s : tensor<?x16xf32>, tensor<?x16xf32>)
  return %r#0, %r#1 : tensor<?x16xf32>, tensor<?x16xf32>
}

func.func @rope_f32(%n: i64, %x: tensor<?x4x64xf32>, %p: tensor<?xi64>) -> tensor<?x4x64xf32> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope half #dynamic ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
    outs(%x : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}

func.func @rope_bf16(%n: i64, %x: tensor<?x4x64xbf16>, %p: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope half #dynamic ins(%x : tensor<?x4x64xbf16>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
    outs(%x : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

func.func @rope_f64(%n: i64, %x: tensor<?x4x64xf64>, %p: tensor<?xi64>) -> tensor<?x4x64xf64> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope half #dynamic ins(%x : tensor<?x4x64xf64>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
    outs(%x : tensor<?x4x64xf64>)
  return %r : tensor<?x4x64xf64>
}

func.func @rope_pairs(%n: i64, %x: tensor<?x4x64xf32>, %p: tensor<?xi64>) -> tensor<?x4x64xf32> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope interleaved #dynamic ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
    outs(%x : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}

func.func @rope_inverse(%n: i64, %x: tensor<?x4x64xf32>, %p: tensor<?xi64>) -> tensor<?x4x64xf32> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope half inverse #dynamic ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
    outs(%x : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}

func.func @rope_axes(%n: i64, %x: tensor<?x4x64xf32>, %p: tensor<2x?xi64>) -> tensor<?x4x64xf32> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.rope half #dynamic axes #posenc.axes<contiguous, [12, 20]> ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<2x?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>) dims = [0]
    outs(%x : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}

func.func @attention_f32(%n: i64, %q: tensor<?x?x4x64xf32>, %k: tensor<?x?x2x64xf32>, %p: tensor<?x?xi64>) -> tensor<?x?x4x64xf32> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = #dynamic> key_rotation = <pairing = half, frequencies = #dynamic>
    ins(%q, %k, %k : tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%q : tensor<?x?x4x64xf32>)
  return %r : tensor<?x?x4x64xf32>
}

// The length is the largest of the call.
func.func @decode_f32(%lengths: tensor<?xi64>, %q: tensor<?x1x4x64xf32>, %k: tensor<?x2x?x64xf32>) -> tensor<?x1x4x64xf32> {
  %zero = arith.constant 0 : i64
  %empty = tensor.empty() : tensor<i64>
  %init = linalg.fill ins(%zero : i64) outs(%empty : tensor<i64>) -> tensor<i64>
  %n = linalg.reduce { arith.maxsi } ins(%lengths : tensor<?xi64>) outs(%init : tensor<i64>) dimensions = [0]
  %high, %low = posenc.turns #dynamic length(%n : tensor<i64>)
  %r = posenc.attention key_layout = head_major query_rotation = <pairing = half, frequencies = #dynamic>
    ins(%q, %k, %k : tensor<?x1x4x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
    lengths(%lengths : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%q : tensor<?x1x4x64xf32>)
  return %r : tensor<?x1x4x64xf32>
}

func.func @append_f32(%lengths: tensor<?xi64>, %k: tensor<?x?x2x64xf32>, %kc: tensor<?x2x?x64xf32>, %vc: tensor<?x2x?x64xf32>) -> (tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>) {
  %n = arith.constant 16384 : i64
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r:2 = posenc.kv_append cache_layout = head_major rotation = <pairing = half, frequencies = #dynamic>
    ins(%k, %k : tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>) lengths(%lengths : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%kc, %vc : tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>)
  return %r#0, %r#1 : tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>
}

func.func @attention_bf16(%n: i64, %q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x4x64xbf16> {
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = #dynamic> key_rotation = <pairing = half, frequencies = #dynamic>
    ins(%q, %k, %k : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// The length is the largest of the call.
func.func @decode_bf16(%lengths: tensor<?xi64>, %q: tensor<?x1x4x64xbf16>, %k: tensor<?x2x?x64xbf16>) -> tensor<?x1x4x64xbf16> {
  %zero = arith.constant 0 : i64
  %empty = tensor.empty() : tensor<i64>
  %init = linalg.fill ins(%zero : i64) outs(%empty : tensor<i64>) -> tensor<i64>
  %n = linalg.reduce { arith.maxsi } ins(%lengths : tensor<?xi64>) outs(%init : tensor<i64>) dimensions = [0]
  %high, %low = posenc.turns #dynamic length(%n : tensor<i64>)
  %r = posenc.attention key_layout = head_major query_rotation = <pairing = half, frequencies = #dynamic>
    ins(%q, %k, %k : tensor<?x1x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    lengths(%lengths : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%q : tensor<?x1x4x64xbf16>)
  return %r : tensor<?x1x4x64xbf16>
}

func.func @append_bf16(%lengths: tensor<?xi64>, %k: tensor<?x?x2x64xbf16>, %kc: tensor<?x2x?x64xbf16>, %vc: tensor<?x2x?x64xbf16>) -> (tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>) {
  %n = arith.constant 16384 : i64
  %high, %low = posenc.turns #dynamic length(%n : i64)
  %r:2 = posenc.kv_append cache_layout = head_major rotation = <pairing = half, frequencies = #dynamic>
    ins(%k, %k : tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>) lengths(%lengths : tensor<?xi64>) turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%kc, %vc : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
  return %r#0, %r#1 : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>
}
