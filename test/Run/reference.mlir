//===- reference.mlir - operations on the reference -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference

// Every operation of the dialect, within its limit: 1 unit in the last place for
// tables, 2 with an attention factor or in f64, 4 for rotations, 0.51 for results
// that are rounded once to 16 bits, 0.6 for bf16 tables.
// RUN: %{run} --function=sincos --input=2x2x3xi64=random | FileCheck %s
// RUN: %{run} --function=yarn --input=64xi64=random | FileCheck %s
// RUN: %{run} --function=sinusoidal --input=i64=2147483000 --input=9 \
// RUN:   | FileCheck %s
// RUN: %{run} --function=sinusoidal --input=i64=0 --input=9 | FileCheck %s
// RUN: %{run} --function=rotate --input=5x2x8xf16=random --input=5x4xf32=random \
// RUN:   --input=5x4xf32=random | FileCheck %s
// RUN: %{run} --function=rope --input=2x2x3x16xf32=random \
// RUN:   --input=2x1x3x16xf32=random --input=2x3xi64=-1000000 | FileCheck %s
// CHECK: {{^}}result #0: max error {{[0-3]\.[0-9][0-9]}} ulp (abs {{[0-9]}}.{{[0-9]}}e-{{[0-9]+}}) at [{{[0-9,]+}}]{{$}}
// CHECK-NOT: {{.}}

func.func @sincos(%p: tensor<2x?x?xi64>) -> tensor<?x?x16xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %d1 = tensor.dim %p, %c1 : tensor<2x?x?xi64>
  %d2 = tensor.dim %p, %c2 : tensor<2x?x?xi64>
  %e = tensor.empty(%d1, %d2) : tensor<?x?x16xf32>
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 32>
    axes #posenc.axes<interleaved, [10, 6]>
    positions(%p : tensor<2x?x?xi64>)
    outs(%e, %e : tensor<?x?x16xf32>, tensor<?x?x16xf32>)
  return %cos : tensor<?x?x16xf32>
}

func.func @yarn(%p: tensor<64xi64>) -> tensor<64x16xf32> {
  %e = tensor.empty() : tensor<64x16xf32>
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 32,
    scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0>>
    positions(%p : tensor<64xi64>)
    outs(%e, %e : tensor<64x16xf32>, tensor<64x16xf32>)
  return %sin : tensor<64x16xf32>
}

func.func @sinusoidal(%first: i64, %n: index) -> tensor<?x6xf64> {
  %e = tensor.empty(%n) : tensor<?x6xf64>
  %t = posenc.sinusoidal interleaved #posenc.frequencies<dim = 6>
    positions(%first : i64) outs(%e : tensor<?x6xf64>)
  return %t : tensor<?x6xf64>
}

func.func @rotate(%x: tensor<?x2x8xf16>, %cos: tensor<?x4xf32>,
                  %sin: tensor<?x4xf32>) -> tensor<?x2x8xf16> {
  %r = posenc.rotate interleaved inverse ins(%x : tensor<?x2x8xf16>)
    tables(%cos, %sin : tensor<?x4xf32>) dims = [0] outs(%x : tensor<?x2x8xf16>)
  return %r : tensor<?x2x8xf16>
}

func.func @rope(%q: tensor<?x2x?x16xf32>, %k: tensor<?x1x?x16xf32>,
                %p: tensor<?x?xi64>)
    -> tensor<?x1x?x16xf32> {
  %r:2 = posenc.rope half inverse #posenc.frequencies<dim = 12>
    ins(%q, %k : tensor<?x2x?x16xf32>, tensor<?x1x?x16xf32>)
    positions(%p : tensor<?x?xi64>) dims = [0, 2] offset = 4
    outs(%q, %k : tensor<?x2x?x16xf32>, tensor<?x1x?x16xf32>)
  return %r#1 : tensor<?x1x?x16xf32>
}

// Operations of other dialects around them.
// RUN: %{run} --function=around --input=6x2x12xf32=random --input=6xi64=random \
// RUN:   --max-rel=1e-6 | FileCheck %s --check-prefix=AROUND
// AROUND: result #0: max error {{.*}} rel {{[0-9]\.[0-9]e-[0-9]+$}}
func.func @around(%x: tensor<?x2x12xf32>, %p: tensor<?xi64>)
    -> tensor<?x2x12xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x12xf32>
  %one = arith.constant dense<1> : tensor<1xi64>
  %cast = tensor.cast %p : tensor<?xi64> to tensor<6xi64>
  %p6 = tensor.insert_slice %one into %cast[2] [1] [1]
    : tensor<1xi64> into tensor<6xi64>
  %q = tensor.cast %p6 : tensor<6xi64> to tensor<?xi64>
  %flat = tensor.collapse_shape %x [[0, 1], [2]]
    : tensor<?x2x12xf32> into tensor<?x12xf32>
  %back = tensor.expand_shape %flat [[0, 1], [2]] output_shape [%n, 2, 12]
    : tensor<?x12xf32> into tensor<?x2x12xf32>
  %e = tensor.empty(%n) : tensor<?x2x12xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%back : tensor<?x2x12xf32>) positions(%q : tensor<?xi64>) dims = [0]
    outs(%e : tensor<?x2x12xf32>)
  return %r : tensor<?x2x12xf32>
}

// A rotation of a rotated tensor, which is rounded in between, has a wider limit.
// RUN: %{run} --function=twice --input=100x4x8xbf16=random \
// RUN:   --input=100xi64=random --input=100xi64=random
func.func @twice(%x: tensor<?x4x8xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>)
    -> tensor<?x4x8xbf16> {
  %0 = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x : tensor<?x4x8xbf16>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x4x8xbf16>)
  %1 = posenc.rope interleaved #posenc.frequencies<dim = 8>
    ins(%0 : tensor<?x4x8xbf16>) positions(%s : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x4x8xbf16>)
  return %1 : tensor<?x4x8xbf16>
}

// Elements that the second rotation copies were computed by the first.
// RUN: %{run} --function=halves --input=100x4x8xbf16=random \
// RUN:   --input=100xi64=random --input=100xi64=random
func.func @halves(%x: tensor<?x4x8xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>)
    -> tensor<?x4x8xbf16> {
  %0 = posenc.rope half #posenc.frequencies<dim = 4>
    ins(%x : tensor<?x4x8xbf16>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x4x8xbf16>)
  %1 = posenc.rope half #posenc.frequencies<dim = 4>
    ins(%0 : tensor<?x4x8xbf16>) positions(%s : tensor<?xi64>) dims = [0] offset = 4
    outs(%0 : tensor<?x4x8xbf16>)
  return %1 : tensor<?x4x8xbf16>
}

// NaN equals NaN, and an infinity equals a reference value that rounds to it.
// RUN: %{run} --function=twice --input=1x4x8xbf16=nan --input=1xi64=1 \
// RUN:   --input=1xi64=2 | FileCheck %s --check-prefix=NAN
// NAN: result #0: max error 0.00 ulp (abs 0.0e+00) at [0,0,0]

// Options replace the default limits.
// RUN: %python %posenc_src/test/Inputs/exits.py 3 %{run} --function=yarn \
// RUN:   --input=64xi64=random --max-ulp=0.01 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ULP
// ULP: {{^}}result #0: max error {{[0-3]\.[0-9]+}} ulp
// ULP: {{^}}error: result #0: off by {{[0-9.]+}} ulp; the limit is 0.01
// RUN: %python %posenc_src/test/Inputs/exits.py 3 %{run} --function=yarn \
// RUN:   --input=64xi64=random --max-rel=1e-12 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REL
// REL: error: result #0: the relative error is {{.*}}; the limit is 1e-12
