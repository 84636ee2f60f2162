// ===- attention.mlir - attention of the GPU benchmark -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ===----------------------------------------------------------------------===//

// ../attention.txt lists the sizes. Queries are rotated by their positions, keys are
// rotated already.

func.func @full_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x16x128xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xbf16>)
  return %r : tensor<?x?x16x128xbf16>
}

func.func @causal_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x16x128xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xbf16>)
  return %r : tensor<?x?x16x128xbf16>
}

func.func @causal_gqa_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x4x128xbf16>, %v: tensor<?x?x4x128xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x4x128xbf16>, tensor<?x?x4x128xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xbf16>)
  return %r : tensor<?x?x16x128xbf16>
}

func.func @causal_f16_128(%q: tensor<?x?x16x128xf16>, %k: tensor<?x?x16x128xf16>, %v: tensor<?x?x16x128xf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xf16>, tensor<?x?x16x128xf16>, tensor<?x?x16x128xf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xf16>)
  return %r : tensor<?x?x16x128xf16>
}

// Without a rotation.
func.func @causal_plain_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x16x128xbf16>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>)
    outs(%q : tensor<?x?x16x128xbf16>)
  return %r : tensor<?x?x16x128xbf16>
}

func.func @causal_where_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x16x128xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xbf16>)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sle, %j, %i : index
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x16x128xbf16>
}

func.func @causal_alibi_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x16x128xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xbf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 16 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x16x128xbf16>
}

// A score region that takes one instruction.
func.func @causal_score_128(%q: tensor<?x?x16x128xbf16>, %k: tensor<?x?x16x128xbf16>, %v: tensor<?x?x16x128xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x128xbf16>)
    score(%s, %b, %h, %i, %j) {
      %c = arith.constant 0.5 : f32
      %y = arith.mulf %s, %c : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x16x128xbf16>
}

func.func @full_64(%q: tensor<?x?x16x64xbf16>, %k: tensor<?x?x16x64xbf16>, %v: tensor<?x?x16x64xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x64xbf16> {
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 64, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x64xbf16>, tensor<?x?x16x64xbf16>, tensor<?x?x16x64xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x64xbf16>)
  return %r : tensor<?x?x16x64xbf16>
}

func.func @causal_64(%q: tensor<?x?x16x64xbf16>, %k: tensor<?x?x16x64xbf16>, %v: tensor<?x?x16x64xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x64xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 64, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x64xbf16>, tensor<?x?x16x64xbf16>, tensor<?x?x16x64xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x64xbf16>)
  return %r : tensor<?x?x16x64xbf16>
}

func.func @full_256(%q: tensor<?x?x16x256xbf16>, %k: tensor<?x?x16x256xbf16>, %v: tensor<?x?x16x256xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x256xbf16> {
  %r = posenc.attention query_rotation = <pairing = half, frequencies = <dim = 256, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x256xbf16>, tensor<?x?x16x256xbf16>, tensor<?x?x16x256xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x256xbf16>)
  return %r : tensor<?x?x16x256xbf16>
}

func.func @causal_256(%q: tensor<?x?x16x256xbf16>, %k: tensor<?x?x16x256xbf16>, %v: tensor<?x?x16x256xbf16>, %p: tensor<?x?xi64>) -> tensor<?x?x16x256xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 256, base = 5.0e+05>>
    ins(%q, %k, %v : tensor<?x?x16x256xbf16>, tensor<?x?x16x256xbf16>, tensor<?x?x16x256xbf16>)
    query_positions(%p : tensor<?x?xi64>)
    outs(%q : tensor<?x?x16x256xbf16>)
  return %r : tensor<?x?x16x256xbf16>
}
