//===- append-mixed.mlir - kv_append to caches of other types -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference

// Copied rows are quantized exactly, and so are their scales.
// RUN: %{run} --function=i8 --input=2x3x2x24xbf16=random \
// RUN:   --input=2x3x2x16xbf16=random --input=2xi64=5 --input=2x2x9x24xi8=random \
// RUN:   --input=2x2x9x16xi8=random --input=2x2x9xf32=random \
// RUN:   --input=2x2x9xf32=random | FileCheck %s --check-prefix=EXACT
// RUN: %{run} --function=e5m2 --input=7x2x16xf32=random \
// RUN:   --input=7x2x16xf32=random --input=7xi64=iota \
// RUN:   --input=2x9x2x16xf8E5M2=random --input=2x9x2x16xf8E5M2=random \
// RUN:   --input=2x2x9xf32=random --input=2x2x9xf32=random \
// RUN:   | FileCheck %s --check-prefix=EXACT
// No new rows, and rows of zeros.
// RUN: %{run} --function=i8 --input=2x0x2x24xbf16=random \
// RUN:   --input=2x0x2x16xbf16=random --input=2xi64=5 --input=2x2x9x24xi8=random \
// RUN:   --input=2x2x9x16xi8=random --input=2x2x9xf32=random \
// RUN:   --input=2x2x9xf32=random | FileCheck %s --check-prefix=EXACT
// RUN: %{run} --function=i8 --input=2x3x2x24xbf16=0 \
// RUN:   --input=2x3x2x16xbf16=-0.0 --input=2xi64=5 --input=2x2x9x24xi8=random \
// RUN:   --input=2x2x9x16xi8=random --input=2x2x9xf32=random \
// RUN:   --input=2x2x9xf32=random | FileCheck %s --check-prefix=EXACT
// Infinities and NaN.
// RUN: %{run} --function=e5m2 --input=7x2x16xf32=inf \
// RUN:   --input=7x2x16xf32=nan --input=7xi64=iota \
// RUN:   --input=2x9x2x16xf8E5M2=random --input=2x9x2x16xf8E5M2=random \
// RUN:   --input=2x2x9xf32=random --input=2x2x9xf32=random \
// RUN:   | FileCheck %s --check-prefix=EXACT
// EXACT: {{^}}result #0: max error 0.00 ulp
// EXACT: {{^}}result #1: max error 0.00 ulp
// EXACT: {{^}}result #2: max error 0.00 ulp
// EXACT: {{^}}result #3: max error 0.00 ulp

// Rows that are normalized and rotated in f32 before quantization.
// RUN: %{run} --function=e4m3 --input=3x5x2x16xbf16=random \
// RUN:   --input=3x5x2x16xbf16=random --input=16xbf16=random --input=3xi64=8 \
// RUN:   --input=3x2x9x16xf8E4M3FN=random --input=3x2x9x16xf8E4M3FN=random \
// RUN:   --input=3x2x9xf32=random --input=3x2x9xf32=random | FileCheck %s
// CHECK: {{^}}result #0: max error
// CHECK: {{^}}result #1: max error 0.00 ulp
// CHECK: {{^}}result #2: max error
// CHECK: {{^}}result #3: max error 0.00 ulp

// Scales of keys and of values are lists of their own, also where norm and scales begin
// with zeros.
// RUN: %{run} --function=e4m3_slots --input=7x2x32xbf16=random \
// RUN:   --input=7x2x32xbf16=random:seed=2 --input=32xbf16=random --input=7xi64=random \
// RUN:   --input=7xi64=iota --input=2x2x4x32xf8E4M3FN=1 --input=2x2x4x32xf8E4M3FN=2 \
// RUN:   --input=2x2x4xf32=1 --input=2x2x4xf32=2 | FileCheck %s

// Scales that are given, of all heads and of each: copied rows are exact, and numbers beyond
// the largest one are clamped, also those that a rotation computes.
// DEFINE: %{scale} =
// DEFINE: %{given} = %{run} --function=given_e4m3 --input=7x2x16xbf16=random \
// DEFINE:   --input=7x2x16xbf16=random:seed=2 --input=7xi64=random --input=7xi64=iota \
// DEFINE:   --input=1x1x1xf32=%{scale} --input=1x2x1xf32=%{scale} \
// DEFINE:   --input=2x2x4x16xf8E4M3FN=1 --input=2x2x4x16xf8E4M3FN=2
// REDEFINE: %{scale} = 0.0171
// RUN: %{given} | FileCheck %s --check-prefix=GIVEN
// REDEFINE: %{scale} = 0.0003
// RUN: %{given} | FileCheck %s --check-prefix=GIVEN
// GIVEN: {{^}}result #0: max error
// GIVEN: {{^}}result #1: max error 0.00 ulp
// DEFINE: %{rows} = 1
// DEFINE: %{given_i8} = %{run} --function=given_i8 --input=2x3x2x24xf32=%{rows} \
// DEFINE:   --input=2x3x2x24xf32=random --input=2xi64=5 --input=1x2x1xf32=0.013 \
// DEFINE:   --input=1x1x1xf32=%{scale} --input=2x9x2x24xi8=1 --input=2x9x2x24xi8=2
// RUN: %{given_i8} | FileCheck %s --check-prefix=COPIED
// REDEFINE: %{rows} = nan
// REDEFINE: %{scale} = 0
// RUN: %{given_i8} | FileCheck %s --check-prefix=COPIED
// REDEFINE: %{rows} = -inf
// REDEFINE: %{scale} = -1
// RUN: %{given_i8} | FileCheck %s --check-prefix=COPIED
// COPIED: {{^}}result #0: max error 0.00 ulp
// COPIED: {{^}}result #1: max error 0.00 ulp
// 4 x: infinities are the largest number, -5.2 is -5, and NaN is kept.
// DEFINE: %{numbers} = --function=given_e5m2 --input=1xi64=0 --input=1x1x1xf32=0.25 \
// DEFINE:   --input=1x1x2x4xf8E5M2=9
// DEFINE: %{store} = posenc-run %s --opt-level=0 %{numbers}
// RUN: rm -rf %t && mkdir %t
// RUN: %{store} --input=1x2x4xf32=14336 > %t/limit && %{store} --input=1x2x4xf32=inf | diff %t/limit -
// RUN: %{store} --input=1x2x4xf32=-1.25 > %t/five && %{store} --input=1x2x4xf32=-1.3 | diff %t/five -
// RUN: not diff %t/limit %t/five
// RUN: %{run} %{numbers} --input=1x2x4xf32=nan | FileCheck %s --check-prefix=COPIED
// Control: another scale.
// DEFINE: %{expect} = %python %posenc_src/test/Inputs/exits.py 3 %{run} \
// DEFINE:   --function=given_i8 --input=2x3x2x24xf32=random --input=2x3x2x24xf32=random \
// DEFINE:   --input=2xi64=5 --input=1x2x1xf32=0.013 --input=1x1x1xf32=0.1 \
// DEFINE:   --input=2x9x2x24xi8=1 --input=2x9x2x24xi8=2
// RUN: posenc-run %s --function=given_i8 --input=2x3x2x24xf32=random \
// RUN:   --input=2x3x2x24xf32=random --input=2xi64=5 --input=1x2x1xf32=0.013 \
// RUN:   --input=1x1x1xf32=0.101 --input=2x9x2x24xi8=1 --input=2x9x2x24xi8=2 \
// RUN:   --output=@%t/0.npy --output=@%t/1.npy
// RUN: %{expect} --expected_output=@%t/0.npy --expected_output=@%t/1.npy

// Controls: a quantized element that is off by one step, a wrong scale and a
// modified slot are found. Copied rows must be exact; rotated ones may differ by
// their rounding.
// DEFINE: %{npy} = %python %S/Inputs/npy.py
// DEFINE: %{exits} = %python %posenc_src/test/Inputs/exits.py
// DEFINE: %{inputs} = --input=3x5x2x16xbf16=random \
// DEFINE:   --input=3x5x2x16xbf16=random --input=16xbf16=random --input=3xi64=8 \
// DEFINE:   --input=3x2x9x16xf8E4M3FN=random --input=3x2x9x16xf8E4M3FN=random \
// DEFINE:   --input=3x2x9xf32=random --input=3x2x9xf32=random
// DEFINE: %{check} = %{run} --function=e4m3 %{inputs}
// RUN: rm -rf %t && mkdir %t
// RUN: posenc-run %s --function=e4m3 %{inputs} --output=@%t/0.npy \
// RUN:   --output=@%t/1.npy --output=@%t/2.npy --output=@%t/3.npy
// RUN: %{check} --expected_output=@%t/0.npy --expected_output=@%t/1.npy \
// RUN:   --expected_output=@%t/2.npy --expected_output=@%t/3.npy
// RUN: %{npy} flip %t/0.npy %t/key.npy 71 0
// RUN: %{npy} flip %t/0.npy %t/slot.npy 5 0
// RUN: %{npy} flip %t/1.npy %t/value.npy 71 0
// RUN: %{npy} flip %t/2.npy %t/scale.npy 4 8
// RUN: %{exits} 3 %{check} --expected_output=@%t/key.npy \
// RUN:   --expected_output=@%t/1.npy --expected_output=@%t/2.npy \
// RUN:   --expected_output=@%t/3.npy
// RUN: %{exits} 3 %{check} --expected_output=@%t/slot.npy \
// RUN:   --expected_output=@%t/1.npy --expected_output=@%t/2.npy \
// RUN:   --expected_output=@%t/3.npy
// RUN: %{exits} 3 %{check} --expected_output=@%t/0.npy \
// RUN:   --expected_output=@%t/value.npy --expected_output=@%t/2.npy \
// RUN:   --expected_output=@%t/3.npy
// RUN: %{exits} 3 %{check} --expected_output=@%t/0.npy \
// RUN:   --expected_output=@%t/1.npy --expected_output=@%t/scale.npy \
// RUN:   --expected_output=@%t/3.npy

// Other floating-point types, rounded once.
// RUN: %{run} --function=f16 --input=3x5x2x16xbf16=random \
// RUN:   --input=3x5x2x16xbf16=random --input=3xi64=8 \
// RUN:   --input=3x2x9x16xf16=random --input=3x2x9x16xf16=random \
// RUN:   | FileCheck %s --check-prefix=FLOAT
// RUN: %{run} --function=bf16 --input=3x5x2x16xf32=random \
// RUN:   --input=3x5x2x16xf32=random --input=3xi64=8 \
// RUN:   --input=3x2x9x16xbf16=random --input=3x2x9x16xbf16=random \
// RUN:   | FileCheck %s --check-prefix=FLOAT
// FLOAT: {{^}}result #0: max error 0.{{[0-9]+}} ulp
// FLOAT: {{^}}result #1: max error 0.{{[0-9]+}} ulp

#r = #posenc.rotation<pairing = half, frequencies = <dim = 16>>

func.func @i8(%k: tensor<?x?x2x24xbf16>, %v: tensor<?x?x2x16xbf16>,
              %n: tensor<?xi64>, %kc: tensor<?x2x?x24xi8>,
              %vc: tensor<?x2x?x16xi8>, %ks: tensor<?x2x?xf32>,
              %vs: tensor<?x2x?xf32>)
    -> (tensor<?x2x?x24xi8>, tensor<?x2x?x16xi8>, tensor<?x2x?xf32>,
        tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major
    ins(%k, %v : tensor<?x?x2x24xbf16>, tensor<?x?x2x16xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x2x?x24xi8>, tensor<?x2x?x16xi8>,
                              tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3
    : tensor<?x2x?x24xi8>, tensor<?x2x?x16xi8>, tensor<?x2x?xf32>,
      tensor<?x2x?xf32>
}

func.func @e5m2(%k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>,
                %n: tensor<?xi64>, %kc: tensor<?x?x2x16xf8E5M2>,
                %vc: tensor<?x?x2x16xf8E5M2>, %ks: tensor<?x2x?xf32>,
                %vs: tensor<?x2x?xf32>)
    -> (tensor<?x?x2x16xf8E5M2>, tensor<?x?x2x16xf8E5M2>, tensor<?x2x?xf32>,
        tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append
    ins(%k, %v : tensor<?x2x16xf32>, tensor<?x2x16xf32>)
    slots(%n : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x?x2x16xf8E5M2>, tensor<?x?x2x16xf8E5M2>,
                              tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3
    : tensor<?x?x2x16xf8E5M2>, tensor<?x?x2x16xf8E5M2>, tensor<?x2x?xf32>,
      tensor<?x2x?xf32>
}

func.func @e4m3(%k: tensor<?x?x2x16xbf16>, %v: tensor<?x?x2x16xbf16>,
                %w: tensor<16xbf16>, %n: tensor<?xi64>,
                %kc: tensor<?x2x?x16xf8E4M3FN>, %vc: tensor<?x2x?x16xf8E4M3FN>,
                %ks: tensor<?x2x?xf32>, %vs: tensor<?x2x?xf32>)
    -> (tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>,
        tensor<?x2x?xf32>, tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major norm_eps = 1.0e-06
    rotation = #r
    ins(%k, %v : tensor<?x?x2x16xbf16>, tensor<?x?x2x16xbf16>)
    norm(%w : tensor<16xbf16>) lengths(%n : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x2x?x16xf8E4M3FN>,
         tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3
    : tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>,
      tensor<?x2x?xf32>, tensor<?x2x?xf32>
}

func.func @f16(%k: tensor<?x?x2x16xbf16>, %v: tensor<?x?x2x16xbf16>,
               %n: tensor<?xi64>, %kc: tensor<?x2x?x16xf16>,
               %vc: tensor<?x2x?x16xf16>)
    -> (tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major rotation = #r
    ins(%k, %v : tensor<?x?x2x16xbf16>, tensor<?x?x2x16xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>)
  return %r#0, %r#1 : tensor<?x2x?x16xf16>, tensor<?x2x?x16xf16>
}

func.func @bf16(%k: tensor<?x?x2x16xf32>, %v: tensor<?x?x2x16xf32>,
                %n: tensor<?xi64>, %kc: tensor<?x2x?x16xbf16>,
                %vc: tensor<?x2x?x16xbf16>)
    -> (tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major rotation = #r
    ins(%k, %v : tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>)
    lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>)
  return %r#0, %r#1 : tensor<?x2x?x16xbf16>, tensor<?x2x?x16xbf16>
}

func.func @e4m3_slots(%k: tensor<?x2x32xbf16>, %v: tensor<?x2x32xbf16>, %w: tensor<32xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x2x?x32xf8E4M3FN>, %vc: tensor<?x2x?x32xf8E4M3FN>, %ks: tensor<?x2x?xf32>, %vs: tensor<?x2x?xf32>) -> (tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major norm_eps = 1.0e-6
    rotation = <pairing = interleaved, frequencies = <dim = 32>>
    ins(%k, %v : tensor<?x2x32xbf16>, tensor<?x2x32xbf16>) positions(%p : tensor<?xi64>) norm(%w : tensor<32xbf16>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>
}

func.func @given_e4m3(%k: tensor<?x2x16xbf16>, %v: tensor<?x2x16xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %ks: tensor<1x1x1xf32>, %vs: tensor<1x2x1xf32>, %kc: tensor<?x2x?x16xf8E4M3FN>, %vc: tensor<?x2x?x16xf8E4M3FN>) -> (tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>) {
  %r:2 = posenc.kv_append cache_layout = head_major rotation = #r
    ins(%k, %v : tensor<?x2x16xbf16>, tensor<?x2x16xbf16>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    key_scales(%ks : tensor<1x1x1xf32>) value_scales(%vs : tensor<1x2x1xf32>)
    outs(%kc, %vc : tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>)
  return %r#0, %r#1 : tensor<?x2x?x16xf8E4M3FN>, tensor<?x2x?x16xf8E4M3FN>
}

func.func @given_i8(%k: tensor<?x?x2x24xf32>, %v: tensor<?x?x2x24xf32>, %n: tensor<?xi64>, %ks: tensor<1x2x1xf32>, %vs: tensor<1x1x1xf32>, %kc: tensor<?x?x2x24xi8>, %vc: tensor<?x?x2x24xi8>) -> (tensor<?x?x2x24xi8>, tensor<?x?x2x24xi8>) {
  %r:2 = posenc.kv_append
    ins(%k, %v : tensor<?x?x2x24xf32>, tensor<?x?x2x24xf32>) lengths(%n : tensor<?xi64>)
    key_scales(%ks : tensor<1x2x1xf32>) value_scales(%vs : tensor<1x1x1xf32>)
    outs(%kc, %vc : tensor<?x?x2x24xi8>, tensor<?x?x2x24xi8>)
  return %r#0, %r#1 : tensor<?x?x2x24xi8>, tensor<?x?x2x24xi8>
}

func.func @given_e5m2(%s: tensor<?xi64>, %scale: tensor<1x1x1xf32>, %c: tensor<?x?x2x4xf8E5M2>, %x: tensor<?x2x4xf32>) -> (tensor<?x?x2x4xf8E5M2>, tensor<?x?x2x4xf8E5M2>) {
  %r:2 = posenc.kv_append
    ins(%x, %x : tensor<?x2x4xf32>, tensor<?x2x4xf32>) slots(%s : tensor<?xi64>)
    key_scales(%scale : tensor<1x1x1xf32>) value_scales(%scale : tensor<1x1x1xf32>)
    outs(%c, %c : tensor<?x?x2x4xf8E5M2>, tensor<?x?x2x4xf8E5M2>)
  return %r#0, %r#1 : tensor<?x?x2x4xf8E5M2>, tensor<?x?x2x4xf8E5M2>
}
