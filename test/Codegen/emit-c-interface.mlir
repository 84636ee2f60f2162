//===- emit-c-interface.mlir - the C entries of a kernel library ===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-cpu --posenc-emit-c-interface=prefix=lib | FileCheck %s
// RUN: posenc-opt %s --posenc-to-cpu | sed 's/tensor<?xi64>, \[0\]/i64, []/' > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-emit-c-interface 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: llvm.func internal @rope(
// CHECK: llvm.func @posenc.launch(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
// CHECK: llvm.func internal @rope.packed(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: llvm.mlir.global internal constant @rope.description(dense<[0, 1,
// CHECK: llvm.func @lib_rope(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64) -> i32
// CHECK: llvm.call @posenc.launch
// CHECK: llvm.func @lib_metadata() -> !llvm.ptr
// CHECK: llvm.func @lib_set_parallel_for(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// WRONG: is not that of a kernel with the signature
func.func @rope(%x: tensor<?x16xf32>, %p: tensor<?xi64>) -> tensor<?x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}
