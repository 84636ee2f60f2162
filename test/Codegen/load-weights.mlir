// RUN: posenc-opt %s --split-input-file --verify-diagnostics --posenc-load-weights | FileCheck %s

// Functions that read weights are marked, and so are their callers.
// CHECK: module {
// CHECK: llvm.mlir.global external @posenc.weights.tensors() {{.*}}: !llvm.array<3 x ptr>
// CHECK-NOT: @w
module attributes {posenc.weights = {w = 2 : i64}} {
  llvm.mlir.global private constant @w() {addr_space = 0 : i32} : !llvm.array<4 x f32>
  llvm.mlir.global private constant @c(dense<1.0> : tensor<4xf32>) {addr_space = 0 : i32} : !llvm.array<4 x f32>

  // CHECK: llvm.func @calls() attributes {posenc.weights}
  llvm.func @calls() {
    llvm.call @reads() : () -> ()
    llvm.return
  }
  // CHECK: llvm.func @reads() attributes {posenc.weights}
  // CHECK: %[[TABLE:.*]] = llvm.mlir.addressof @posenc.weights.tensors : !llvm.ptr
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[TABLE]][2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  // CHECK: %[[WEIGHTS:.*]] = llvm.load %[[PLACE]] invariant : !llvm.ptr -> !llvm.ptr
  // CHECK: llvm.load %[[WEIGHTS]] : !llvm.ptr -> f32
  llvm.func @reads() {
    %0 = llvm.mlir.addressof @w : !llvm.ptr
    %1 = llvm.load %0 : !llvm.ptr -> f32
    llvm.return
  }
  // CHECK: llvm.func @other() {
  // CHECK: llvm.mlir.addressof @c
  llvm.func @other() {
    %0 = llvm.mlir.addressof @c : !llvm.ptr
    %1 = llvm.load %0 : !llvm.ptr -> f32
    llvm.return
  }
}

// -----

// expected-error @below {{expected 'w' in 'posenc.weights' to be the number of a global without a value}}
module attributes {posenc.weights = {w = dense<1.0> : tensor<4xf32>}} {
  llvm.mlir.global private constant @w() {addr_space = 0 : i32} : !llvm.array<4 x f32>
}

// -----

// expected-error @below {{'posenc.weights' is an attribute of a module, a dictionary of elements or numbers, or a unit attribute of a function}}
module attributes {posenc.weights = 1 : i64} {
}
