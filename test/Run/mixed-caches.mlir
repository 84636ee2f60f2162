//===- mixed-caches.mlir - attention with caches of other types -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference

// Other floating-point types, rotated after they are widened.
// RUN: %{run} --function=wide --input=2x5x4x16xbf16=random \
// RUN:   --input=2x7x2x16xf32=random --input=2x7x2x16xf32=random | FileCheck %s
// RUN: %{run} --function=narrow --input=2x3x4x16xf32=random \
// RUN:   --input=2x131x2x16xf16=random --input=2x131x2x16xf16=random | FileCheck %s
// RUN: %{run} --function=narrow --input=2x3x4x16xf32=random \
// RUN:   --input=2x0x2x16xf16=random --input=2x0x2x16xf16=random | FileCheck %s

// Quantized caches with a scale per row, per head, or for the whole cache.
// RUN: %{run} --function=rows --input=3x1x4x16xbf16=random \
// RUN:   --input=3x2x37x16xi8=random --input=3x2x37xf32=random \
// RUN:   --input=3x2x37x16xi8=random --input=3x2x37xf32=random \
// RUN:   --input=3xi64=31 | FileCheck %s
// RUN: %{run} --function=rows --input=0x1x4x16xbf16=random \
// RUN:   --input=0x2x37x16xi8=random --input=0x2x37xf32=random \
// RUN:   --input=0x2x37x16xi8=random --input=0x2x37xf32=random \
// RUN:   --input=0xi64=31 | FileCheck %s --check-prefix=EMPTY
// Scales of masked keys are not read.
// RUN: %{run} --function=rows --input=3x1x4x16xbf16=random \
// RUN:   --input=3x2x37x16xi8=random --input=3x2x37xf32=nan \
// RUN:   --input=3x2x37x16xi8=random --input=3x2x37xf32=inf \
// RUN:   --input=3xi64=0 | FileCheck %s --check-prefix=EMPTY
// EMPTY: {{^}}result #0: max error 0.00 ulp
// RUN: %{run} --function=heads --input=2x9x4x16xf32=random \
// RUN:   --input=2x70x2x16xi8=random --input=1x2x1xf32=iota \
// RUN:   --input=2x70x2x16xi8=random --input=1x1x1xf32=0.5 | FileCheck %s

// Both f8 types, in paged and ragged caches; rows are normalized and rotated after
// they are read.
// RUN: %{run} --function=paged --input=7x4x16xbf16=random \
// RUN:   --input=5x2x8x16xf8E4M3FN=random --input=5x2x8xf32=random \
// RUN:   --input=5x2x8x16xf8E4M3FN=random --input=5x2x8xf32=random \
// RUN:   --input=2x2xi32=iota --input=3xi64=0 --input=2xi64=13 | FileCheck %s
// RUN: %{run} --function=packed --input=7x4x16xf16=random \
// RUN:   --input=9x2x16xf8E5M2=random --input=2x9xf32=random \
// RUN:   --input=9x2x16xf8E5M2=random --input=2x9xf32=random \
// RUN:   --input=3xi64=iota --input=3xi64=iota | FileCheck %s
// RUN: %{run} --function=raw --input=2x3x4x16xbf16=random \
// RUN:   --input=2x2x37x16xf8E4M3FN=random --input=2x2x37xf32=random \
// RUN:   --input=2x2x37x16xf8E4M3FN=random --input=2x2x37xf32=random \
// RUN:   --input=2xi64=35 --input=16xbf16=random | FileCheck %s
// RUN: %{run} --function=raw_heads --input=2x3x4x16xbf16=random \
// RUN:   --input=2x2x37x16xi8=random --input=2x2x37xf32=random \
// RUN:   --input=2x2x37x16xi8=random --input=2x2x37xf32=random \
// RUN:   --input=32xbf16=random | FileCheck %s
// CHECK: {{^}}result #0: max error {{.*}} rel {{[0-9]\.[0-9]e[+-][0-9]+$}}

// All are fused except for the norm over all heads, which reads its rows twice.
// RUN: rm -rf %t && mkdir %t
// RUN: posenc-compile %s -o %t/fused.o 2>&1 | FileCheck %s --check-prefix=SLOW \
// RUN:   --implicit-check-not='warning'
// SLOW: mixed-caches.mlir:{{[0-9]+}}:8: warning: attention is not fused, {{.*}}: a norm over all heads of quantized keys is not supported
// SLOW-NOT: warning

// Decomposition gives the same results up to rounding.
// RUN: posenc-opt %s --posenc-decompose-attention -o %t/tiles.mlir
// RUN: FileCheck %s --check-prefix=TILES --input-file=%t/tiles.mlir
// TILES-NOT: posenc.attention
// DEFINE: %{args} =
// DEFINE: %{fused} = posenc-run %s %{args} --output=@%t/fused.npy
// DEFINE: %{tiles} = posenc-run %t/tiles.mlir %{args} \
// DEFINE:   --expected_output=@%t/fused.npy
// REDEFINE: %{args} = --function=rows --input=3x1x4x16xbf16=random \
// REDEFINE:   --input=3x2x37x16xi8=random --input=3x2x37xf32=random \
// REDEFINE:   --input=3x2x37x16xi8=random --input=3x2x37xf32=random \
// REDEFINE:   --input=3xi64=31
// RUN: %{fused}
// RUN: %{tiles} --max-ulp=1.01
// REDEFINE: %{args} = --function=heads --input=2x9x4x16xf32=random \
// REDEFINE:   --input=2x70x2x16xi8=random --input=1x2x1xf32=iota \
// REDEFINE:   --input=2x70x2x16xi8=random --input=1x1x1xf32=0.5
// RUN: %{fused}
// RUN: %{tiles} --max-ulp=9
// REDEFINE: %{args} = --function=paged --input=7x4x16xbf16=random \
// REDEFINE:   --input=5x2x8x16xf8E4M3FN=random --input=5x2x8xf32=random \
// REDEFINE:   --input=5x2x8x16xf8E4M3FN=random --input=5x2x8xf32=random \
// REDEFINE:   --input=2x2xi32=iota --input=3xi64=0 --input=2xi64=13
// RUN: %{fused}
// RUN: %{tiles} --max-ulp=1.01
// REDEFINE: %{args} = --function=packed --input=7x4x16xf16=random \
// REDEFINE:   --input=9x2x16xf8E5M2=random --input=2x9xf32=random \
// REDEFINE:   --input=9x2x16xf8E5M2=random --input=2x9xf32=random \
// REDEFINE:   --input=3xi64=iota --input=3xi64=iota
// RUN: %{fused}
// RUN: %{tiles} --max-ulp=1.01
// REDEFINE: %{args} = --function=raw --input=2x3x4x16xbf16=random \
// REDEFINE:   --input=2x2x37x16xf8E4M3FN=random --input=2x2x37xf32=random \
// REDEFINE:   --input=2x2x37x16xf8E4M3FN=random --input=2x2x37xf32=random \
// REDEFINE:   --input=2xi64=35 --input=16xbf16=random
// RUN: %{fused}
// RUN: %{tiles} --max-ulp=1.01
// REDEFINE: %{args} = --function=narrow --input=2x3x4x16xf32=random \
// REDEFINE:   --input=2x131x2x16xf16=random --input=2x131x2x16xf16=random
// RUN: %{fused}
// RUN: %{tiles} --max-ulp=9

#r = #posenc.rotation<pairing = half, frequencies = <dim = 16>>

func.func @wide(%q: tensor<?x?x4x16xbf16>, %k: tensor<?x?x2x16xf32>,
                %v: tensor<?x?x2x16xf32>) -> tensor<?x?x4x16xbf16> {
  %r = posenc.attention causal query_rotation = #r key_rotation = #r
    ins(%q, %k, %v : tensor<?x?x4x16xbf16>, tensor<?x?x2x16xf32>,
                     tensor<?x?x2x16xf32>)
    outs(%q : tensor<?x?x4x16xbf16>)
  return %r : tensor<?x?x4x16xbf16>
}

func.func @narrow(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xf16>,
                  %v: tensor<?x?x2x16xf16>) -> tensor<?x?x4x16xf32> {
  %r = posenc.attention query_rotation = #r key_rotation = #r
    ins(%q, %k, %v : tensor<?x?x4x16xf32>, tensor<?x?x2x16xf16>,
                     tensor<?x?x2x16xf16>)
    outs(%q : tensor<?x?x4x16xf32>)
  return %r : tensor<?x?x4x16xf32>
}

func.func @rows(%q: tensor<?x1x4x16xbf16>, %k: tensor<?x2x?x16xi8>,
                %ks: tensor<?x2x?xf32>, %v: tensor<?x2x?x16xi8>,
                %vs: tensor<?x2x?xf32>, %n: tensor<?xi64>)
    -> tensor<?x1x4x16xbf16> {
  %r = posenc.attention scale = 1.0e-03 key_layout = head_major
    ins(%q, %k, %v : tensor<?x1x4x16xbf16>, tensor<?x2x?x16xi8>,
                     tensor<?x2x?x16xi8>)
    lengths(%n : tensor<?xi64>) key_scales(%ks : tensor<?x2x?xf32>)
    value_scales(%vs : tensor<?x2x?xf32>) outs(%q : tensor<?x1x4x16xbf16>)
  return %r : tensor<?x1x4x16xbf16>
}

func.func @heads(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x2x16xi8>,
                 %ks: tensor<1x2x1xf32>, %v: tensor<?x?x2x16xi8>,
                 %vs: tensor<1x1x1xf32>) -> tensor<?x?x4x16xf32> {
  %r = posenc.attention causal scale = 1.0e-03
    ins(%q, %k, %v : tensor<?x?x4x16xf32>, tensor<?x?x2x16xi8>,
                     tensor<?x?x2x16xi8>)
    key_scales(%ks : tensor<1x2x1xf32>) value_scales(%vs : tensor<1x1x1xf32>)
    outs(%q : tensor<?x?x4x16xf32>)
  return %r : tensor<?x?x4x16xf32>
}

func.func @paged(%q: tensor<?x4x16xbf16>, %k: tensor<?x2x?x16xf8E4M3FN>,
                 %ks: tensor<?x2x?xf32>, %v: tensor<?x2x?x16xf8E4M3FN>,
                 %vs: tensor<?x2x?xf32>, %t: tensor<?x?xi32>,
                 %c: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?x4x16xbf16> {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x16xbf16>, tensor<?x2x?x16xf8E4M3FN>,
                     tensor<?x2x?x16xf8E4M3FN>)
    lengths(%n : tensor<?xi64>) cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>) key_scales(%ks : tensor<?x2x?xf32>)
    value_scales(%vs : tensor<?x2x?xf32>) outs(%q : tensor<?x4x16xbf16>)
  return %r : tensor<?x4x16xbf16>
}

func.func @packed(%q: tensor<?x4x16xf16>, %k: tensor<?x2x16xf8E5M2>,
                  %ks: tensor<2x?xf32>, %v: tensor<?x2x16xf8E5M2>,
                  %vs: tensor<2x?xf32>, %a: tensor<?xi64>, %b: tensor<?xi64>)
    -> tensor<?x4x16xf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x4x16xf16>, tensor<?x2x16xf8E5M2>,
                     tensor<?x2x16xf8E5M2>)
    cu_seqlens(%a, %b : tensor<?xi64>, tensor<?xi64>)
    key_scales(%ks : tensor<2x?xf32>) value_scales(%vs : tensor<2x?xf32>)
    outs(%q : tensor<?x4x16xf16>)
  return %r : tensor<?x4x16xf16>
}

func.func @raw(%q: tensor<?x?x4x16xbf16>, %k: tensor<?x2x?x16xf8E4M3FN>,
               %ks: tensor<?x2x?xf32>, %v: tensor<?x2x?x16xf8E4M3FN>,
               %vs: tensor<?x2x?xf32>, %n: tensor<?xi64>, %w: tensor<16xbf16>)
    -> tensor<?x?x4x16xbf16> {
  %r = posenc.attention causal norm_eps = 1.0e-06 key_layout = head_major
    query_rotation = #r key_rotation = #r
    ins(%q, %k, %v : tensor<?x?x4x16xbf16>, tensor<?x2x?x16xf8E4M3FN>,
                     tensor<?x2x?x16xf8E4M3FN>)
    lengths(%n : tensor<?xi64>) key_norm(%w : tensor<16xbf16>)
    key_scales(%ks : tensor<?x2x?xf32>) value_scales(%vs : tensor<?x2x?xf32>)
    outs(%q : tensor<?x?x4x16xbf16>)
  return %r : tensor<?x?x4x16xbf16>
}

// A norm over all heads of a token.
func.func @raw_heads(%q: tensor<?x?x4x16xbf16>, %k: tensor<?x2x?x16xi8>,
                     %ks: tensor<?x2x?xf32>, %v: tensor<?x2x?x16xi8>,
                     %vs: tensor<?x2x?xf32>, %w: tensor<32xbf16>)
    -> tensor<?x?x4x16xbf16> {
  %r = posenc.attention norm_eps = 1.0e-06 key_layout = head_major
    query_rotation = #r key_rotation = #r
    ins(%q, %k, %v : tensor<?x?x4x16xbf16>, tensor<?x2x?x16xi8>,
                     tensor<?x2x?x16xi8>)
    key_norm(%w : tensor<32xbf16>) key_scales(%ks : tensor<?x2x?xf32>)
    value_scales(%vs : tensor<?x2x?xf32>) outs(%q : tensor<?x?x4x16xbf16>)
  return %r : tensor<?x?x4x16xbf16>
}
