//===- online-attention-invalid.mlir - violated constraints ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --verify-diagnostics --split-input-file

// Two keys in the generic form.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %i: index, %m: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected one operand each for the indices, query, key and value, got 2}}
  %r:3 = "posenc.online_attention"(%i, %i, %i, %i, %q, %k, %k, %k, %q, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 2, 1, 0, 3>}> ({}, {})
    : (index, index, index, index, tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>, tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Two destinations.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected three destinations, got 2 (online_attn_c1)}}
  %r:2 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1 : tensor<4x5x8xf32>, tensor<4x5xf32>)
  return
}

// -----

// Four destinations.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>, %o3: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected three destinations, got 4 (online_attn_c1)}}
  %r:4 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2, %o3 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Values wider than the sums.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf64>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected keys and values that are not wider than the sums' 'f32', got 'tensor<7x8xf64>' (online_attn_c2)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf64>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Sums in f64 of bf16.
func.func @f(%q: tensor<4x5x8xbf16>, %k: tensor<7x8xbf16>, %v: tensor<7x8xbf16>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf64>) {
  // expected-error @+1 {{'posenc.online_attention' op expected element type 'f32', got 'tensor<4x5xf64>' (online_attn_c2)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xbf16>, tensor<7x8xbf16>, tensor<7x8xbf16>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf64>)
  return
}

// -----

// Sums in f32 of f64.
func.func @f(%q: tensor<4x5x8xf64>, %k: tensor<7x8xf64>, %v: tensor<7x8xf64>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected element type 'f64', got 'tensor<4x5x8xf32>' (online_attn_c2)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf64>, tensor<7x8xf64>, tensor<7x8xf64>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Queries without heads.
func.func @f(%q: tensor<5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected query of rank 3, got 'tensor<5x8xf32>' (online_attn_c3)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Keys with heads.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<1x7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected key of rank 2, got 'tensor<1x7x8xf32>' (online_attn_c3)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<1x7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// A dynamic last dimension.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x?xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected value with a static last dimension between 1 and 65536, got 'tensor<7x?xf32>' (online_attn_c3)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x?xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Sums of values without heads.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected first destination of rank 3, got 'tensor<5x8xf32>' (online_attn_c3)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Maxima with lanes.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5x1xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected second destination of rank 2, got 'tensor<4x5x1xf32>' (online_attn_c3)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5x1xf32>, tensor<4x5xf32>)
  return
}

// -----

// Sums without heads.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected third destination of rank 2, got 'tensor<5xf32>' (online_attn_c3)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<5xf32>)
  return
}

// -----

// Keys of another width.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x16xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op operand #5 has size 16 in dimension 1 where another operand has 8 (online_attn_c4)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x16xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Fewer values than keys.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<6x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op operand #6 has size 6 in dimension 0 where another operand has 7 (online_attn_c4)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<6x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// A running sum with the width of the keys.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x16xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op operand #7 has size 8 in dimension 2 where another operand has 16 (online_attn_c4)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x16xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// Maxima the other way round.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<5x4xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op operand #8 has size 5 in dimension 0 where another operand has 4 (online_attn_c4)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<5x4xf32>, tensor<4x5xf32>)
  return
}

// -----

// A mask of other keys.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %m: tensor<1x5x8xi1>, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op operand #7 has size 8 in dimension 2 where another operand has 7 (online_attn_c4)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>) mask(%m : tensor<1x5x8xi1>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// A mask with the rank of posenc.attention.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %m: tensor<1x4x5x7xi1>, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected mask of rank 3, got 'tensor<1x4x5x7xi1>' (online_attn_c5)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>) mask(%m : tensor<1x4x5x7xi1>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// An infinite scale.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected a finite scale, got 0x7FF0000000000000 : f64 (online_attn_c6)}}
  %r:3 = posenc.online_attention scale = 0x7FF0000000000000 at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// A negative window.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected a window that is not negative, got -1 (online_attn_c6)}}
  %r:3 = posenc.online_attention window_right = -1 at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// A score of another type.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected region 'score' to yield 'f32' (online_attn_c7)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
    score(%s, %b, %h, %x, %y) {
      %t = arith.extf %s : f32 to f64
      posenc.yield %t : f64
    }
  return
}

// -----

// A score as a mask.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected region 'where' to yield 'i1' (online_attn_c8)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
    where(%b, %h, %x, %y) {
      %t = arith.constant 1.0 : f32
      posenc.yield %t : f32
    }
  return
}

// -----

// A memref from within.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
    score(%s, %b, %h, %x, %y) {
      // expected-error @+1 {{'memref.get_global' in region 'score' does not work on scalars (online_attn_c9)}}
      %t = memref.get_global @state : memref<4xf32>
      %u = memref.load %t[%h] : memref<4xf32>
      posenc.yield %u : f32
    }
  return
}

// -----

// Tensors and memrefs.
func.func @f(%q: tensor<4x5x8xf32>, %k: memref<7x8xf32>, %v: tensor<7x8xf32>, %i: index, %o0: tensor<4x5x8xf32>, %o1: tensor<4x5xf32>, %o2: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op mixes tensors and memrefs (online_attn_c10)}}
  %r:3 = posenc.online_attention at(%i, %i, %i, %i)
    ins(%q, %k, %v : tensor<4x5x8xf32>, memref<7x8xf32>, tensor<7x8xf32>)
    outs(%o0, %o1, %o2 : tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>)
  return
}

// -----

// No result.
func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<7x8xf32>, %i: index, %m: tensor<4x5xf32>) {
  // expected-error @+1 {{'posenc.online_attention' op expected one result for each tensor destination, of its type (online_attn_c10)}}
  "posenc.online_attention"(%i, %i, %i, %i, %q, %k, %k, %q, %m, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 1, 1, 0, 3>}> ({}, {})
    : (index, index, index, index, tensor<4x5x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>, tensor<4x5x8xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> ()
  return
}
