//===- emit-c-interface.mlir - C entry points of a library ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --posenc-to-cpu --posenc-emit-c-interface=prefix=lib | FileCheck %s
// RUN: posenc-opt %s --posenc-to-cpu --posenc-emit-c-interface="cpu-features=2,1 variant=1" | FileCheck %s --check-prefix=SECOND
// RUN: posenc-opt %s --posenc-to-cpu --posenc-emit-c-interface="cpu-features=2,1 variant=1 entries=false" | FileCheck %s --check-prefix=PACKED
// RUN: posenc-opt %s --posenc-to-cpu | sed 's/tensor<?xi64>, \[0\]/i64, []/' > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-emit-c-interface 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not posenc-opt %s --posenc-to-cpu --posenc-emit-c-interface="cpu-features=2,1 variant=2" 2>&1 | FileCheck %s --check-prefix=VARIANT

// The words are x, p and the result, the size, and the first stride of each
// matrix.
// CHECK: llvm.func internal @rope(
// CHECK: llvm.func internal @rope.kernel.0.packed(%[[WORDS:.*]]: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: llvm.getelementptr %[[WORDS]][3]
// CHECK: llvm.getelementptr %[[WORDS]][4]
// CHECK: llvm.getelementptr %[[WORDS]][5]
// CHECK-NOT: llvm.getelementptr %[[WORDS]][6]
// CHECK: llvm.func @posenc.launch(!llvm.ptr, !llvm.ptr) -> i32
// CHECK: @rope.names("rope\00in0\00in1\00out0\00")
// Fields of an argument: offset of the name, code, bits, rank, in-place input,
// strides, dimensions, whether only its shape is used, and whether sizes depend on it.
// CHECK: @rope.arguments(dense<[5, 2, 32, 2, -1, 4, 0, 0, 0,
// CHECK-SAME: 9, 0, 64, 1, -1, 5, 2, 0, 0,
// CHECK-SAME: 13, 2, 32, 2, 0, 5, 3, 0, 0]>
// CHECK: @rope.dims(dense<[3, -1, -1, 16, 3, -1, 3, -1, -1, 16]>
// CHECK: @rope.sizes(dense<-1>
// CHECK: @rope.variants() {{.*}} !llvm.array<1 x struct<(i64, ptr)>>
// CHECK: @rope.description()
// CHECK: llvm.func @lib_rope(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64) -> i32
// CHECK: llvm.alloca %{{.*}} x i64
// CHECK: llvm.call @posenc.launch(
// CHECK: llvm.func @lib_rope_dl(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64) -> i32
// CHECK: llvm.call @posenc.launch_tensors
// CHECK: llvm.func @__tvm_ffi_lib_rope(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i32, %{{.*}}: !llvm.ptr) -> i32
// CHECK: llvm.call @posenc.launch_ffi
// CHECK: @metadata.text({{.*}}\22dl\22:\22lib_rope_dl\22
// CHECK-SAME: \22strided\22:true
// CHECK-SAME: \22tvm_ffi\22:\22__tvm_ffi_lib_rope\22
// CHECK: llvm.func @lib_metadata() -> !llvm.ptr
// CHECK: llvm.func @lib_set_parallel_for(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)

// Functions of another module are declared.
// SECOND: llvm.func internal @rope.kernel.1.packed({{.*}}) {
// SECOND: llvm.mlir.global external constant @rope.kernel.0()
// SECOND: @rope.variants() {{.*}} !llvm.array<2 x struct<(i64, ptr)>>
// SECOND: llvm.mlir.addressof @rope.kernel.0
// SECOND: llvm.mlir.addressof @rope.kernel.1

// PACKED: llvm.func internal @rope(
// PACKED: llvm.func internal @rope.kernel.1.packed({{.*}}) {
// PACKED-NOT: posenc_
// PACKED-NOT: posenc.launch

// VARIANT: error: no variant 2: there are 2
// WRONG: is not that of a kernel with the signature
func.func @rope(%x: tensor<?x16xf32>, %p: tensor<?xi64>) -> tensor<?x16xf32> {
  %r = posenc.rope half #posenc.frequencies<dim = 16> ins(%x : tensor<?x16xf32>) positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x16xf32>)
  return %r : tensor<?x16xf32>
}
