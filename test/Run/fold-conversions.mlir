//===- fold-conversions.mlir - keys converted before attention -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Keys and values that a function converts before attention: the fused code is as
// accurate as attention on the converted values, and needs no memory for them.

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference
// DEFINE: %{q} = --input=1x3x8x64xf32=random
// RUN: %{run} --function=rows %{q} --input=1x2x37x64xi8=random --input=1x2x37xf32=0.01 \
// RUN:   --input=1x2x37x64xi8=random:seed=3 --input=2xf32=0.02 | FileCheck %s
// RUN: %{run} --function=constants %{q} --input=1x2x37x64xf8E4M3FN=random \
// RUN:   --input=1x2x37x64xf8E4M3FN=random:seed=3 --input=f32=0.7 | FileCheck %s
// RUN: %{run} --function=token_major %{q} --input=1x37x2x64xi8=random \
// RUN:   --input=1x2x37xf32=0.01 | FileCheck %s
// RUN: %{run} --function=token_major %{q} --input=1x0x2x64xi8=random \
// RUN:   --input=1x2x0xf32=0.01 | FileCheck %s
// RUN: %{run} --function=channels %{q} --input=1x2x37x64xi8=random --input=64xf32=0.01 \
// RUN:   | FileCheck %s
// CHECK: result #0: max error

// RUN: posenc-compile %s -o %t.o --header=%t.h
// RUN: grep -c 'int64_t .*_workspace(' %t.h | FileCheck %s --check-prefix=COUNT
// RUN: FileCheck %s --check-prefix=HEADER < %t.h
// COUNT: {{^}}1{{$}}
// HEADER: int64_t {{.*}}_channels_workspace(

#row = affine_map<(b, h, k, d) -> (b, h, k, d)>
#bhk = affine_map<(b, h, k, d) -> (b, h, k)>
#h = affine_map<(b, h, k, d) -> (h)>
#hk = affine_map<(b, h, k, d) -> (h, k)>
#none = affine_map<(b, h, k, d) -> ()>
#channel = affine_map<(b, h, k, d) -> (d)>
#tbhk = affine_map<(b, k, h, d) -> (b, h, k)>

func.func @rows(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x?x64xi8>, %s: tensor<1x2x?xf32>, %v: tensor<1x2x?x64xi8>, %t: tensor<2xf32>) -> tensor<1x3x8x64xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<1x2x?x64xi8>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #bhk, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x2x?x64xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %g = linalg.generic {indexing_maps = [#row, #h, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v, %t : tensor<1x2x?x64xi8>, tensor<2xf32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %b, %x : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %r = posenc.attention causal key_layout = head_major ins(%q, %f, %g : tensor<1x3x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

func.func @constants(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x?x64xf8E4M3FN>, %v: tensor<1x2x?x64xf8E4M3FN>, %t: tensor<f32>) -> tensor<1x3x8x64xf32> {
  %c2 = arith.constant 2 : index
  %cst = arith.constant 0.25 : f32
  %n = tensor.dim %k, %c2 : tensor<1x2x?x64xf8E4M3FN>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #none, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %t : tensor<1x2x?x64xf8E4M3FN>, tensor<f32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: f8E4M3FN, %b: f32, %c: f32):
      %x = arith.extf %a : f8E4M3FN to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %g = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%v : tensor<1x2x?x64xf8E4M3FN>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: f8E4M3FN, %c: f32):
      %x = arith.extf %a : f8E4M3FN to f32
      %y = arith.mulf %x, %cst : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %r = posenc.attention key_layout = head_major ins(%q, %f, %g : tensor<1x3x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

func.func @token_major(%q: tensor<1x3x8x64xf32>, %k: tensor<1x?x2x64xi8>, %s: tensor<1x2x?xf32>) -> tensor<1x3x8x64xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %k, %c1 : tensor<1x?x2x64xi8>
  %e = tensor.empty(%n) : tensor<1x?x2x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #tbhk, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x?x2x64xi8>, tensor<1x2x?xf32>) outs(%e : tensor<1x?x2x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x?x2x64xf32>
  %r = posenc.attention causal ins(%q, %f, %f : tensor<1x3x8x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}

func.func @channels(%q: tensor<1x3x8x64xf32>, %k: tensor<1x2x?x64xi8>, %s: tensor<64xf32>) -> tensor<1x3x8x64xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<1x2x?x64xi8>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #channel, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %s : tensor<1x2x?x64xi8>, tensor<64xf32>) outs(%e : tensor<1x2x?x64xf32>) {
    ^bb0(%a: i8, %b: f32, %c: f32):
      %x = arith.sitofp %a : i8 to f32
      %y = arith.mulf %x, %b : f32
      linalg.yield %y : f32
  } -> tensor<1x2x?x64xf32>
  %r = posenc.attention causal key_layout = head_major ins(%q, %f, %f : tensor<1x3x8x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>) outs(%q : tensor<1x3x8x64xf32>)
  return %r : tensor<1x3x8x64xf32>
}
