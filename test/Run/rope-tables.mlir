//===- rope-tables.mlir - ropes by tables of their own --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{run} = posenc-run %s --opt-level=0 --reference
// DEFINE: %{example} = posenc-run %posenc_src/examples/rotations.mlir --opt-level=0 --reference

// Factors that depend on the position, of positions of several types.
// DEFINE: %{qk} = --input=2x37x4x64xf32=random:seed=1 --input=2x37x2x64xf32=random:seed=2
// RUN: %{example} --function=xpos %{qk} --input=2x37xi64=iota | FileCheck %s
// RUN: %{example} --function=xpos %{qk} --input=2x37xi64=-900 | FileCheck %s
// RUN: %{example} --function=xpos %{qk} --input=2x37xi64=20000 | FileCheck %s
// Up to the last factors of f32, 2^128 and 2^-126.
// RUN: %{example} --function=xpos %{qk} --input=2x37xi64=35000 | FileCheck %s
// RUN: %{run} --function=range --input=37x64xf32=0.01 --input=37xi64=-36250 | FileCheck %s
// RUN: %{run} --function=range --input=37x64xf32=random --input=37xi64=35600 | FileCheck %s
// RUN: %{run} --function=far --input=5x64xf32=random --input=5xi64=-9223372036854775800 | FileCheck %s
// RUN: %{example} --function=xpos --input=0x37x4x64xf32=0 --input=0x37x2x64xf32=0 --input=0x37xi64=0 | FileCheck %s
// RUN: %{run} --function=narrow --input=37x4x80xbf16=random --input=37xi32=iota | FileCheck %s
// RUN: %{run} --function=narrow --input=37x4x80xbf16=random --input=37xi32=-7000 | FileCheck %s
// RUN: %{run} --function=floats --input=37x4x64xf16=random --input=37xf32=iota | FileCheck %s
// RUN: %{run} --function=floats --input=37x4x64xf16=random --input=37xf32=1234.5678 | FileCheck %s
// RUN: %{run} --function=row --input=37x64xf32=random --input=1000 | FileCheck %s
// RUN: %{run} --function=undone --input=37x4x64xf32=random --input=37xi64=iota | FileCheck %s

// Ropes of ropes: to another scaling, of several axes, of learned frequencies.
// RUN: %{example} --function=rescaled --input=2x37x8x64xf32=random --input=2x37xi64=iota --input=2x37xi64=random | FileCheck %s
// RUN: %{example} --function=rescaled --input=1x1x8x64xf32=random --input=1x1xi64=0 --input=1x1xi64=2147483647 | FileCheck %s
// RUN: %{run} --function=multimodal --input=37x8x64xbf16=random --input=3x37xi64=random --input=37xi64=random | FileCheck %s
// RUN: %{example} --function=mixed --input=37x8x64xf32=random --input=37xi64=iota --input=37xi64=random --input=32xf32=random --input=32xf32=random:seed=4 | FileCheck %s
// RUN: %{run} --function=both --input=37x8x64xf32=random --input=37xi64=iota | FileCheck %s

// Conversions of pairings are exact.
// DEFINE: %{exact} = FileCheck %s --check-prefix=EXACT
// RUN: %{example} --function=weights --input=30x512xbf16=random | %{exact}
// RUN: %{run} --function=window --input=5x7x40xf32=random | %{exact}
// RUN: %{run} --function=window --input=0x7x40xf32=random | %{exact}
// RUN: %{run} --function=bytes --input=5x6xi8=random | %{exact}
// RUN: %{run} --function=other_pairing --input=37x4x64xf32=random --input=37xi64=random | FileCheck %s

// CHECK: {{^}}result #0: max error {{[0-9.]+}} ulp
// EXACT: {{^}}result #0: max error 0.00 ulp

// RUN: rm -rf %t && mkdir %t
// RUN: %if numpy %{ %numpy_python -B %S/Inputs/rope-tables.py posenc-run \
// RUN:   %posenc_src/examples/rotations.mlir %t \
// RUN:   | FileCheck %s --check-prefix=NUMPY %}
// NUMPY: {{^}}5 checks, 0 wrong; 9 of 9 faults{{$}}

// One pass over the rows.
// RUN: posenc-opt %s --posenc-tabulate-ropes | FileCheck %s --check-prefix=PASS
// PASS-LABEL: func.func @multimodal(
// PASS-NOT:     posenc.rope
// PASS:         posenc.rotate half ins(%arg0 :
// PASS-LABEL: func.func @both(

#plain = #posenc.frequencies<dim = 64>
#yarn = #posenc.frequencies<dim = 64, scaling = #posenc.yarn<factor = 4.0, original_max_position = 4096.0>>
#linear = #posenc.frequencies<dim = 64, base = 5.0e5, scaling = #posenc.linear<factor = 2.0>>
#queries = #posenc.xpos<base = 512.0, gamma = 0.4>
#keys = #posenc.xpos<base = 512.0, gamma = 0.4, reciprocal = true>

func.func @narrow(%x: tensor<?x4x80xbf16>, %p: tensor<?xi32>) -> tensor<?x4x80xbf16> {
  %r = posenc.rope half #yarn scale #posenc.xpos<base = 300.0, gamma = 1.5, origin = -10>
    ins(%x : tensor<?x4x80xbf16>) positions(%p : tensor<?xi32>) dims = [0] offset = 5 outs(%x : tensor<?x4x80xbf16>)
  return %r : tensor<?x4x80xbf16>
}

func.func @floats(%x: tensor<?x4x64xf16>, %p: tensor<?xf32>) -> tensor<?x4x64xf16> {
  %r = posenc.rope half #plain scale #posenc.xpos<base = 512.0, gamma = 0.4, origin = 1024>
    ins(%x : tensor<?x4x64xf16>) positions(%p : tensor<?xf32>) dims = [0] outs(%x : tensor<?x4x64xf16>)
  return %r : tensor<?x4x64xf16>
}

func.func @row(%x: tensor<?x64xf32>, %p: i64) -> tensor<?x64xf32> {
  %r = posenc.rope half inverse #yarn scale #keys
    ins(%x : tensor<?x64xf32>) positions(%p : i64) dims = [0] outs(%x : tensor<?x64xf32>)
  return %r : tensor<?x64xf32>
}

// An inverse rope with a scale undoes the forward one.
func.func @undone(%x: tensor<?x4x64xf32>, %p: tensor<?xi64>) -> tensor<?x4x64xf32> {
  %a = posenc.rope half #yarn scale #queries
    ins(%x : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x64xf32>)
  %r = posenc.rope half inverse #yarn scale #queries
    ins(%a : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x4x64xf32>)
  return %r : tensor<?x4x64xf32>
}

func.func @multimodal(%k: tensor<?x8x64xbf16>, %p: tensor<3x?xi64>, %q: tensor<?xi64>) -> tensor<?x8x64xbf16> {
  %a = posenc.rope half inverse #plain axes #posenc.axes<contiguous, [8, 12, 12]>
    ins(%k : tensor<?x8x64xbf16>) positions(%p : tensor<3x?xi64>) dims = [0] outs(%k : tensor<?x8x64xbf16>)
  %r = posenc.rope half #yarn
    ins(%a : tensor<?x8x64xbf16>) positions(%q : tensor<?xi64>) dims = [0] outs(%k : tensor<?x8x64xbf16>)
  return %r : tensor<?x8x64xbf16>
}

// A scale and a rope of a rope.
func.func @both(%x: tensor<?x8x64xf32>, %p: tensor<?xi64>) -> tensor<?x8x64xf32> {
  %a = posenc.rope interleaved #linear scale #keys
    ins(%x : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8x64xf32>)
  %r = posenc.rope interleaved inverse #plain
    ins(%a : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8x64xf32>)
  return %r : tensor<?x8x64xf32>
}

func.func @window(%x: tensor<?x7x40xf32>) -> tensor<?x7x40xf32> {
  %r = posenc.convert_pairing half to interleaved dim = 22 offset = 9 %x : tensor<?x7x40xf32>
  return %r : tensor<?x7x40xf32>
}

func.func @bytes(%x: tensor<5x6xi8>) -> tensor<5x6xi8> {
  %r = posenc.convert_pairing half to interleaved dim = 6 %x : tensor<5x6xi8>
  return %r : tensor<5x6xi8>
}

// A rope of the other pairing, between two conversions.
func.func @other_pairing(%x: tensor<?x4x64xf32>, %p: tensor<?xi64>) -> tensor<?x4x64xf32> {
  %a = posenc.convert_pairing half to interleaved dim = 64 %x : tensor<?x4x64xf32>
  %b = posenc.rope interleaved #yarn
    ins(%a : tensor<?x4x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%a : tensor<?x4x64xf32>)
  %r = posenc.convert_pairing interleaved to half dim = 64 %b : tensor<?x4x64xf32>
  return %r : tensor<?x4x64xf32>
}

func.func @range(%x: tensor<?x64xf32>, %p: tensor<?xi64>) -> tensor<?x64xf32> {
  %r = posenc.rope interleaved #plain scale #queries
    ins(%x : tensor<?x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x64xf32>)
  return %r : tensor<?x64xf32>
}

// The distance from the origin does not wrap.
func.func @far(%x: tensor<?x64xf32>, %p: tensor<?xi64>) -> tensor<?x64xf32> {
  %r = posenc.rope interleaved #plain scale #posenc.xpos<base = 1.0e19, gamma = 0.4, origin = 9223372036854775807>
    ins(%x : tensor<?x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x64xf32>)
  return %r : tensor<?x64xf32>
}
