//===- KernelPasses.td - kernels, buffers and tasks --------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_KERNELPASSES_TD
#define POSENC_CODEGEN_KERNELPASSES_TD

include "mlir/Pass/PassBase.td"

def PosencCreateKernelsPass
    : Pass<"posenc-create-kernels", "::mlir::ModuleOp"> {
  let summary = "Give public functions destinations and a C signature";
  let description = [{
    Input: public functions on tensors. Output: kernels. Results become memref
    arguments that the operations write directly, and the attribute
    `posenc.abi` holds the C signature. Two dynamic dimensions are one size of
    that signature if the operations of the function require them to be equal; a
    result's size that follows from the arguments is not passed. Left alone:
    private functions. This pass runs before bufferization, which could turn a
    dynamically shaped result into an allocation.

    ```
    func.func @add(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
      ...
      %r = linalg.add ins(%x, %y : ...) outs(%e : ...)
      return %r : tensor<?x64xf32>
    }
    ```
    becomes
    ```
    func.func @add(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>,
                   %out: memref<?x64xf32, strided<[?, 1]>>) attributes {posenc.abi = ...} {
      ...
      %o = bufferization.to_tensor %out restrict writable
      %r = linalg.add ins(%x, %y : ...) outs(%o : ...)
      bufferization.materialize_in_destination %r in restrict writable %out
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::posenc::PosencDialect"];
}

def PosencBufferizeKernelsPass
    : Pass<"posenc-bufferize-kernels", "::mlir::ModuleOp"> {
  let summary = "Bufferize a module whose kernels take strided memrefs";
  let description = [{
    Input: a module of functions on tensors, usually kernels of
    `posenc-create-kernels`. Output: functions on memrefs, by upstream's
    `one-shot-bufferize` with function boundaries. The pass chooses the layouts:
    the last dimension of an argument is contiguous and every other one has a
    dynamic stride, so that one kernel serves all views that a caller has.
    Arguments of a kernel have offset 0; those of private functions have a
    dynamic one. Left alone: operations that are on memrefs already.

    ```
    func.func @f(%x: tensor<?x64xf32>, %out: memref<?x64xf32, strided<[?, 1]>>)
    ```
    becomes
    ```
    func.func @f(%x: memref<?x64xf32, strided<[?, 1]>>,
                 %out: memref<?x64xf32, strided<[?, 1]>>)
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencPackArgumentsPass
    : Pass<"posenc-pack-arguments", "::mlir::ModuleOp"> {
  let summary = "Take matrices that are posenc.packed as panels";
  let description = [{
    Input: a function with an argument that has the attribute `posenc.packed`
    and is the second matrix of matrix products. Output: the argument is
    panels of 32 columns (panels x rows x 32), a `linalg.unpack` makes the
    matrix from them, and a new function `<function>_pack_<argument>` makes the
    panels. `posenc-tile-contractions` reads the panels in place of the matrix.
    Left alone: all other arguments.

    ```
    func.func @f(%x: tensor<8x64xf32>, %w: tensor<64x96xf32> {posenc.packed}) -> ... {
      linalg.matmul ins(%x, %w : ...) ...
    }
    ```
    becomes
    ```
    func.func @f(%x: tensor<8x64xf32>, %w: tensor<3x64x32xf32> {posenc.packed = "panels32"}) -> ... {
      %m = linalg.unpack %w outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32] ...
      linalg.matmul ins(%x, %m : ...) ...
    }
    func.func @f_pack_in1(%m: tensor<64x96xf32>) -> tensor<3x64x32xf32> {
      linalg.pack %m ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencCopyToLoopsPass
    : InterfacePass<"posenc-copy-to-loops", "::mlir::FunctionOpInterface"> {
  let summary = "Turn memref.copy into loops";
  let description = [{
    Input: `memref.copy`, which would become a call of MLIR's runner library for
    strided memory; a kernel library does not link that. Output: loops that copy
    rows by vectors, and the remainder of a row by elements. A copy between two
    function arguments is skipped at run time if both begin at the same address,
    as they do where an output overwrites its input. Left alone: all other
    operations.

    ```
    memref.copy %x, %y : memref<8x64xf32, strided<[?, 1]>> to memref<8x64xf32, strided<[?, 1]>>
    ```
    becomes
    ```
    %different = arith.cmpi ne, %x_address, %y_address : index
    scf.if %different {
      scf.for %row = %c0 to %c8 step %c1 {
        scf.for %i = %c0 to %c64 step %c8 {
          %v = vector.load %x[%row, %i] : ..., vector<8xf32>
          vector.store %v, %y[%row, %i] : ..., vector<8xf32>
        }
      }
    }
    ```
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
           "Bytes of the widest vector of the target">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencExpandReshapesPass
    : InterfacePass<"posenc-expand-reshapes", "::mlir::FunctionOpInterface"> {
  let summary = "Turn memref.expand_shape into memref.reinterpret_cast";
  let description = [{
    Input: `memref.expand_shape` that splits a dimension into several of dynamic
    size, which upstream's `expand-strided-metadata` does not expand. Output:
    `memref.reinterpret_cast`. Left alone: all other reshapes.

    ```mlir
    func.func @f(%x: memref<?xf32>, %a: index, %b: index) -> memref<?x?xf32> {
      %y = memref.expand_shape %x [[0, 1]] output_shape [%a, %b] : memref<?xf32> into memref<?x?xf32>
      return %y : memref<?x?xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<?xf32>, %a: index, %b: index) -> memref<?x?xf32> {
      %base, %offset, %size, %stride = memref.extract_strided_metadata %x : memref<?xf32> -> memref<f32>, index, index, index
      %y = memref.reinterpret_cast %base to offset: [0], sizes: [%a, %b], strides: [%b, 1] : memref<f32> to memref<?x?xf32>
      return %y : memref<?x?xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencDeallocateBuffersPass
    : Pass<"posenc-deallocate-buffers", "::mlir::ModuleOp"> {
  let summary = "Insert bufferization.dealloc into functions that free nothing";
  let description = [{
    Input: functions on memrefs. Output, by upstream's
    `ownership-based-buffer-deallocation`: each `memref.alloc` is freed where its
    last user ends. Left alone: functions that free memory already, to which
    upstream's pass cannot be applied a second time, and functions whose loops
    have become branches.

    ```
    func.func @f() {
      %a = memref.alloc() : memref<64xf32>
      ...
      return
    }
    ```
    becomes
    ```
    func.func @f() {
      %a = memref.alloc() : memref<64xf32>
      ...
      bufferization.dealloc (%a : memref<64xf32>) if (%true)
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PosencPromoteAllocsToStackPass
    : InterfacePass<"posenc-promote-allocs-to-stack", "::mlir::FunctionOpInterface"> {
  let summary = "Put small allocations of a tile on the stack";
  let description = [{
    Input: `memref.alloc` in a loop whose address stays within its block.
    Output: a `memref.alloca` at the start of the function, shared by all
    iterations; a `memref.dealloc` of the buffer is erased. A dynamic size
    counts as its upper bound. Left alone:
    allocations of more than 64 KiB, those of unknown bound, and those that
    would bring the function above 512 KiB of stack.

    ```
    scf.forall (%i) in (8) {
      %a = memref.alloc() : memref<64xf32>
      ...
    }
    ```
    becomes
    ```
    %a = memref.alloca() : memref<64xf32>
    scf.forall (%i) in (8) {
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencPlanWorkspacePass
    : InterfacePass<"posenc-plan-workspace", "::mlir::FunctionOpInterface"> {
  let summary = "Place a kernel's intermediate buffers in a workspace";
  let description = [{
    Input: kernels that allocate intermediate buffers in their own block.
    Output: the buffers are views of one new argument, the workspace. The
    kernel stores its size in bytes to another new argument, or -1 if computing
    the size overflows. A few small buffers go on the stack instead. Left alone:
    kernels in which the size of a buffer depends on more than the sizes of the
    arguments, such as on a scalar argument.

    ```
    func.func @f(%x: memref<?x64xf32, ...>, %y: memref<?x64xf32, ...>) attributes {posenc.abi = ...} {
      %a = memref.alloc(%n) : memref<?x64xf32>
      ...
      memref.dealloc %a : memref<?x64xf32>
    }
    ```
    becomes
    ```
    func.func @f(%x: ..., %y: ..., %size: memref<i64>, %workspace: memref<?xi8>)
        attributes {posenc.abi = ..., posenc.workspace = ...} {
      memref.store %bytes, %size[] : memref<i64>
      %a = memref.view %workspace[%offset][%n] : memref<?xi8> to memref<?x64xf32>
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencForallToTasksPass
    : InterfacePass<"posenc-forall-to-tasks", "::mlir::FunctionOpInterface"> {
  let summary = "Split the work of a kernel into tasks of equal size";
  let description = [{
    Input: kernels with `scf.forall` loops in their own block. Output: a kernel
    whose work is one `scf.forall` takes two more arguments, the index of a task
    and the number of tasks, and loops over the iterations of that task.
    Iterations are independent, so that results do not depend on the number.

    Other kernels have phases, one for each `scf.forall` and one for the
    operations between two of them. A phase is selected by one more argument, a
    memref. Buffers that several phases use become arguments, too; operations
    that every task can repeat, such as those that compute sizes, are in no
    phase. Where a phase uses a value of an earlier one that is not in memory,
    both are one phase.

    Left alone: functions that are not kernels, and loops within other loops.

    ```
    func.func @f(%x: memref<?x64xf32, ...>) attributes {posenc.abi = ...} {
      scf.forall (%i) in (%n) { ... }
    }
    ```
    becomes
    ```
    func.func @f(%x: memref<?x64xf32, ...>, %task: index, %tasks: index)
        attributes {posenc.abi = ..., posenc.chunked} {
      scf.for %i = %begin to %end step %c1 { ... }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

def PosencMoveAllocasToWorkspacePass
    : InterfacePass<"posenc-move-allocas-to-workspace", "::mlir::FunctionOpInterface"> {
  let summary = "Move the memory of a kernel from the stack to its workspace";
  let description = [{
    Input: a kernel with the attribute `posenc.workspace` that was split by
    `posenc-forall-to-tasks`. Output: each `memref.alloca` at its start of static
    shape and at least 256 bytes is a view of a new argument, which each task
    has for itself and which is aligned to 64 bytes; the attribute
    `posenc.scratch` holds its size. Left alone: smaller and dynamic ones, and
    functions without a workspace.

    ```
    func.func @f(...) attributes {posenc.workspace = ...} {
      %a = memref.alloca() : memref<256xf32>
    ```
    becomes
    ```
    func.func @f(..., %scratch: memref<1024xi8>) attributes {posenc.workspace = ..., posenc.scratch = ...} {
      %a = memref.view %scratch[%c0][] : memref<1024xi8> to memref<256xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencOutlineLoopsPass
    : Pass<"posenc-outline-loops", "::mlir::ModuleOp"> {
  let summary = "Outline the loops of functions that have many";
  let description = [{
    Input: functions with more than eight loops in one block. LLVM takes time
    that grows with the square of their number, and the stack frame holds what
    all of them need. Output: each loop is the body of a private function that is
    not inlined, together with the allocas that only it uses. Left alone: blocks
    with fewer loops.

    ```
    scf.for %i = %c0 to %n step %c1 { ... }   // and eight more
    ```
    becomes
    ```
    call @f_loop(%x, %n) : (memref<?xf32>, index) -> ()
    ...
    func.func private @f_loop(%x: memref<?xf32>, %n: index) attributes {no_inline} {
      scf.for %i = %c0 to %n step %c1 { ... }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

#endif // POSENC_CODEGEN_KERNELPASSES_TD
