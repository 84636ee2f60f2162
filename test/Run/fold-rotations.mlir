//===- fold-rotations.mlir - a rope before attention or kv_append ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A rope that is folded into attention or kv_append gives the same bits as one that
// is not: @apart also returns the rope's result, so its rope is not folded.

// RUN: rm -rf %t && mkdir %t
// RUN: posenc-compile %s -o %t/libfold.so
// RUN: posenc-compile %s --emit=tiled -o %t/tiled.mlir
// RUN: FileCheck %s --input-file=%t/tiled.mlir
// CHECK-LABEL: func.func @folded(
// CHECK-NOT:     posenc.rope
// CHECK-LABEL: func.func @apart(
// CHECK:         posenc.rope
// CHECK-LABEL: func.func @folded_append(
// CHECK-LABEL: func.func @apart_append(

// DEFINE: %{qkv} = --input=2x70x6x32xf32=random --input=2x70x2x32xf32=random \
// DEFINE:   --input=2x70x2x32xf32=random --input=2x70xi64=iota
// RUN: posenc-run %t/libfold.so --function=folded %{qkv} --output=@%t/folded.npy
// RUN: posenc-run %t/libfold.so --function=apart %{qkv} --output=@%t/apart.npy --output=@%t/q.npy --output=@%t/k.npy
// RUN: cmp %t/folded.npy %t/apart.npy
// RUN: posenc-run %s --function=folded %{qkv} --reference

// DEFINE: %{one} = --input=2x1x6x32xf32=random --input=2x1x2x32xf32=random \
// DEFINE:   --input=2x1x2x32xf32=random --input=2x1xi64=4000000000000
// RUN: posenc-run %t/libfold.so --function=folded %{one} --output=@%t/folded.npy
// RUN: posenc-run %t/libfold.so --function=apart %{one} --output=@%t/apart.npy --output=@%t/q.npy --output=@%t/k.npy
// RUN: cmp %t/folded.npy %t/apart.npy

// DEFINE: %{append} = --input=3x5x2x32xbf16=random --input=3x5x2x32xbf16=random \
// DEFINE:   --input=3x5xi64=iota --input=3xi64=9 --input=3x2x16x32xbf16=0 --input=3x2x16x32xbf16=0
// RUN: posenc-run %t/libfold.so --function=folded_append %{append} --output=@%t/folded.npy --output=@%t/v.npy
// RUN: posenc-run %t/libfold.so --function=apart_append %{append} --output=@%t/apart.npy --output=@%t/v.npy --output=@%t/k.npy
// RUN: cmp %t/folded.npy %t/apart.npy
// RUN: posenc-run %s --function=folded_append %{append} --reference

!q = tensor<?x?x6x32xf32>
!k = tensor<?x?x2x32xf32>
!p = tensor<?x?xi64>
!new = tensor<?x?x2x32xbf16>
!cache = tensor<?x2x?x32xbf16>

func.func @folded(%q: !q, %k: !k, %v: !k, %p: !p) -> !q {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 32> ins(%q, %k : !q, !k)
    positions(%p : !p) dims = [0, 1] outs(%q, %k : !q, !k)
  %o = posenc.attention causal ins(%r#0, %r#1, %v : !q, !k, !k) outs(%q : !q)
  return %o : !q
}

func.func @apart(%q: !q, %k: !k, %v: !k, %p: !p) -> (!q, !q, !k) {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 32> ins(%q, %k : !q, !k)
    positions(%p : !p) dims = [0, 1] outs(%q, %k : !q, !k)
  %o = posenc.attention causal ins(%r#0, %r#1, %v : !q, !k, !k) outs(%q : !q)
  return %o, %r#0, %r#1 : !q, !q, !k
}

func.func @folded_append(%k: !new, %v: !new, %p: !p, %n: tensor<?xi64>, %kc: !cache, %vc: !cache) -> (!cache, !cache) {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 16> ins(%k : !new)
    positions(%p : !p) dims = [0, 1] offset = 8 outs(%k : !new)
  %c:2 = posenc.kv_append cache_layout = head_major ins(%r, %v : !new, !new)
    lengths(%n : tensor<?xi64>) outs(%kc, %vc : !cache, !cache)
  return %c#0, %c#1 : !cache, !cache
}

func.func @apart_append(%k: !new, %v: !new, %p: !p, %n: tensor<?xi64>, %kc: !cache, %vc: !cache) -> (!cache, !cache, !new) {
  %r = posenc.rope interleaved #posenc.frequencies<dim = 16> ins(%k : !new)
    positions(%p : !p) dims = [0, 1] offset = 8 outs(%k : !new)
  %c:2 = posenc.kv_append cache_layout = head_major ins(%r, %v : !new, !new)
    lengths(%n : tensor<?xi64>) outs(%kc, %vc : !cache, !cache)
  return %c#0, %c#1, %r : !cache, !cache, !new
}

// Positions that all sequences share.
// RUN: posenc-run %s --function=shared --opt-level=0 --input=3x2x17x32xf32=random --input=3x2x17x32xf32=random --input=17xi64=iota --reference
!s = tensor<?x2x?x32xf32>
func.func @shared(%q: !s, %k: !s, %p: tensor<?xi64>) -> !s {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 32>
    ins(%q, %k : !s, !s) positions(%p : tensor<?xi64>) dims = [2] outs(%q, %k : !s, !s)
  %o = posenc.attention query_layout = head_major key_layout = head_major
    ins(%r#0, %r#1, %k : !s, !s, !s) outs(%q : !s)
  return %o : !s
}
