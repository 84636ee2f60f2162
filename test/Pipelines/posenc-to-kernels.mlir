//===- posenc-to-kernels.mlir - the passes that all targets share ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// REQUIRES: spirv
// CPUs, NVIDIA GPUs and Vulkan devices start with the same passes, and so from the
// same operations and C signatures.
// DEFINE: %{target} =
// DEFINE: %{dump} = posenc-opt %s --posenc-to-%{target} -o /dev/null \
// DEFINE:   --mlir-print-ir-after=posenc-create-kernels 2>&1 \
// DEFINE:   | sed -n '/IR Dump After/,/^}/p' > %t.%{target}
// REDEFINE: %{target} = cpu
// RUN: %{dump}
// REDEFINE: %{target} = nvvm
// RUN: %{dump}
// REDEFINE: %{target} = spirv
// RUN: %{dump}
// RUN: diff %t.cpu %t.nvvm
// RUN: diff %t.cpu %t.spirv
// RUN: FileCheck %s --input-file=%t.nvvm

// A kernel keeps this signature to the end.
// RUN: posenc-opt %s --posenc-to-cpu | FileCheck %s --check-prefix=ABI
// RUN: posenc-opt %s --posenc-to-nvvm 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=ABI

// ABI: {{(func|llvm)}}.func @rotated(%arg0
// ABI-SAME: posenc.abi = #posenc.abi<inputs = [#posenc.arg<"q", tensor<?x4x64xbf16>, [0]>, #posenc.arg<"in1", tensor<?x2x64xbf16>, [0]>, #posenc.arg<"in2", tensor<?xi64>, [0]>], outputs = [#posenc.arg<"out0", tensor<?x4x64xbf16>, [0]>, #posenc.arg<"out1", tensor<?x2x64xbf16>, [0]>], sizes = [-1], in_place = [0, 1], size_names = ["q_dim0"]>

// Rotations by the tables of one sincos become one rope.
// CHECK-LABEL: func.func @rotated
// CHECK-SAME: posenc.abi
// CHECK: posenc.rope half
// CHECK-NOT: posenc.rotate
// CHECK: return
func.func @rotated(%q: tensor<?x4x64xbf16> {posenc.name = "q"}, %k: tensor<?x2x64xbf16>, %p: tensor<?xi64>) -> (tensor<?x4x64xbf16>, tensor<?x2x64xbf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %t = tensor.empty(%n) : tensor<?x32xf32>
  %c, %s = posenc.sincos #posenc.frequencies<dim = 64> positions(%p : tensor<?xi64>) outs(%t, %t : tensor<?x32xf32>, tensor<?x32xf32>)
  %x = posenc.rotate half ins(%q : tensor<?x4x64xbf16>) tables(%c, %s : tensor<?x32xf32>) dims = [0] outs(%q : tensor<?x4x64xbf16>)
  %y = posenc.rotate half ins(%k : tensor<?x2x64xbf16>) tables(%c, %s : tensor<?x32xf32>) dims = [0] outs(%k : tensor<?x2x64xbf16>)
  return %x, %y : tensor<?x4x64xbf16>, tensor<?x2x64xbf16>
}

// A rope of queries and keys is a rotation of attention; `where` is causal.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: posenc.abi
// CHECK-NOT: posenc.rope
// CHECK: posenc.attention causal query_rotation = {{.*}} key_rotation = {{.*}} query_positions(%{{.*}}) key_positions(
// CHECK-NOT: where
// CHECK: return
func.func @attention(%q: tensor<?x?x4x64xf32>, %p: tensor<?x?xi64>) -> tensor<?x?x4x64xf32> {
  %r:2 = posenc.rope half #posenc.frequencies<dim = 64> ins(%q, %q : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>) positions(%p : tensor<?x?xi64>) dims = [0, 1] outs(%q, %q : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>)
  %o = posenc.attention ins(%r#0, %r#1, %q : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>) outs(%q : tensor<?x?x4x64xf32>)
    where(%b, %h, %i, %j) {
      %is_seen = arith.cmpi sle, %j, %i : index
      posenc.yield %is_seen : i1
    }
  return %o : tensor<?x?x4x64xf32>
}

// Many query heads of one token are tokens of a head.
// CHECK-LABEL: func.func @latent
// CHECK: posenc.attention query_layout = head_major ins(%{{.*}} : tensor<?x1x128x64xbf16>
func.func @latent(%q: tensor<?x1x128x64xbf16>, %k: tensor<?x?x1x64xbf16>) -> tensor<?x1x128x64xbf16> {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x1x128x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>) outs(%q : tensor<?x1x128x64xbf16>)
  return %r : tensor<?x1x128x64xbf16>
}

// Attention converts keys and values when it reads them.
// CHECK-LABEL: func.func @converted
// CHECK-NOT: arith.extf
// CHECK: posenc.attention ins(%{{.*}} : tensor<2x3x8x64xf32>, tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>)
func.func @converted(%q: tensor<2x3x8x64xf32>, %k: tensor<2x?x2x64xbf16>) -> tensor<2x3x8x64xf32> {
  %f = arith.extf %k : tensor<2x?x2x64xbf16> to tensor<2x?x2x64xf32>
  %r = posenc.attention ins(%q, %f, %f : tensor<2x3x8x64xf32>, tensor<2x?x2x64xf32>, tensor<2x?x2x64xf32>) outs(%q : tensor<2x3x8x64xf32>)
  return %r : tensor<2x3x8x64xf32>
}

// Callers pack the matrix, and have a function that does it.
// CHECK-LABEL: func.func @product
// CHECK-SAME: tensor<3x64x32xf32>
// CHECK-SAME: posenc.abi = {{.*}}"panels32"
// CHECK: func.func @product_pack_in1
func.func @product(%x: tensor<8x64xf32>, %w: tensor<64x96xf32> {posenc.packed}, %o: tensor<8x96xf32>) -> tensor<8x96xf32> {
  %r = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf32>) outs(%o : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %r : tensor<8x96xf32>
}
