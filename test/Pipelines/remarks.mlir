//===- remarks.mlir - passes report their choices -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --split-input-file --posenc-to-cpu --remarks-filter=posenc -o /dev/null 2>&1 | FileCheck %s
// Without a filter, no pass reports anything.
// RUN: posenc-opt %s --split-input-file --posenc-to-cpu -o /dev/null 2>&1 | FileCheck %s --allow-empty --check-prefix=SILENT
// SILENT-NOT: {{.}}

#frequencies = #posenc.frequencies<dim = 64, base = 10000.0>

// CHECK: remark: [Passed] posenc-fuse-ropes | Category:posenc | Function=merged | Remark="merged with an earlier rotation by the same positions"
func.func @merged(%q: tensor<?x8x64xf32>, %k: tensor<?x2x64xf32>, %p: tensor<?xi64>) -> (tensor<?x8x64xf32>, tensor<?x2x64xf32>) {
  %0 = posenc.rope half #frequencies ins(%q : tensor<?x8x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%q : tensor<?x8x64xf32>)
  %1 = posenc.rope half #frequencies ins(%k : tensor<?x2x64xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%k : tensor<?x2x64xf32>)
  return %0, %1 : tensor<?x8x64xf32>, tensor<?x2x64xf32>
}

// -----

#frequencies = #posenc.frequencies<dim = 64, base = 10000.0>

// CHECK: remark: [Passed] convert-posenc-tables-to-vector | {{.*}}"cos and sin by angle addition along runs of positions"
// CHECK: remark: [Passed] posenc-forall-to-tasks | Category:posenc | Function=table | Remark="phases: 1, parallel: 1; the bytes of the outputs determine the number of tasks"
func.func @table(%p: tensor<?xi64>, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = posenc.sinusoidal sin_cos #frequencies positions(%p : tensor<?xi64>) outs(%o : tensor<?x64xf32>)
  return %0 : tensor<?x64xf32>
}

// -----

// CHECK: remark: [Passed] convert-posenc-attention-to-vector | {{.*}}"prefill kernel: {{[0-9]+}} queries of {{[0-9]+}} heads and {{[0-9]+}} keys per tile, f32 FMA"
// CHECK: remark: [Passed] convert-posenc-attention-to-vector | {{.*}}"decode kernel for 1 to 1 queries: {{[0-9]+}} query heads of {{[0-9]+}} key heads per task, {{[0-9]+}} keys per tile, up to {{[0-9]+}} KV splits"
func.func @attention(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>) -> tensor<?x?x8x64xf32> {
  %0 = posenc.attention ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>) outs(%q : tensor<?x?x8x64xf32>)
  return %0 : tensor<?x?x8x64xf32>
}

// -----

// CHECK: remark: [Passed] posenc-decompose-attention | {{.*}}keys per tile"
func.func @not_fused(%q: tensor<1x9x2x640xf32>, %k: tensor<1x9x2x640xf32>) -> tensor<1x9x2x640xf32> {
  %0 = posenc.attention ins(%q, %k, %k : tensor<1x9x2x640xf32>, tensor<1x9x2x640xf32>, tensor<1x9x2x640xf32>) outs(%q : tensor<1x9x2x640xf32>)
  return %0 : tensor<1x9x2x640xf32>
}

// -----

// The elementwise operation becomes part of the reduction, which keeps partial
// results in registers.
// CHECK-DAG: remark: [Passed] posenc-fuse-elementwise | {{.*}}"fused into its only user"
// CHECK-DAG: remark: [Passed] posenc-tile-contractions | {{.*}}"blocks of {{[0-9]+}} x {{[0-9]+}} x {{[0-9]+}}, register tiles of {{[0-9]+}} x {{[0-9]+}}, FMA, panels are packed"
// CHECK-DAG: remark: [Passed] posenc-tile-reductions | {{.*}}"64 partial results per row"
// CHECK-DAG: remark: [Passed] posenc-plan-workspace | {{.*}}"{{[0-9]+}} buffers are in a workspace, as they are not known to fit in 32768 bytes of stack"
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @product(%a: tensor<128x512xf32>, %b: tensor<512x512xf32>, %s: tensor<128xf32>) -> tensor<128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x512xf32>) -> tensor<128x512xf32>
  %m = linalg.matmul ins(%a, %b : tensor<128x512xf32>, tensor<512x512xf32>) outs(%z : tensor<128x512xf32>) -> tensor<128x512xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<128x512xf32>) outs(%e : tensor<128x512xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.negf %x : f32
    linalg.yield %y : f32
  } -> tensor<128x512xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<128x512xf32>) outs(%s : tensor<128xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %x, %o : f32
    linalg.yield %y : f32
  } -> tensor<128xf32>
  return %r : tensor<128xf32>
}
