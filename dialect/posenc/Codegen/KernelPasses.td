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
  let summary = "Convert public functions to kernels with a C signature";
  let description = [{
    Input: public functions on tensors. Output: kernels. Results become memref
    arguments that the operations write directly, and the attribute
    `posenc.abi` holds the C signature. Dynamic dimensions share one size of the
    signature if the operations of the function require them to be equal; sizes
    of results that can be computed from the arguments are not passed. Left
    alone: private functions. This pass runs before bufferization, which could
    allocate memory for a dynamically shaped result.

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
  let options = [
    Option<"assertions", "assertions", "bool", /*default=*/"true",
           "Keep the results that say which assertion fails">
  ];
}

def PosencBufferizeKernelsPass
    : Pass<"posenc-bufferize-kernels", "::mlir::ModuleOp"> {
  let summary = "Bufferize a module with strided memrefs as kernel arguments";
  let description = [{
    Input: a module of functions on tensors, usually kernels of
    `posenc-create-kernels`. Output: functions on memrefs, by upstream's
    `one-shot-bufferize` with function boundaries. The last dimension of an
    argument is contiguous and every other one has a dynamic stride, so one
    kernel supports all such views of a caller's tensors. Arguments of kernels
    have offset 0, those of private functions a dynamic offset. Left alone:
    operations that are on memrefs already.

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
  let summary = "Pass posenc.packed arguments as panels";
  let description = [{
    Input: a function with an argument that has the attribute `posenc.packed`
    and is the right-hand matrix of matrix products. Output: the argument has the
    type of panels of 32 columns (panels x rows x 32), a `linalg.unpack` restores
    the matrix, and a new function `<function>_pack_<argument>` packs the matrix
    into panels. `posenc-tile-contractions` reads the panels directly, without
    the unpack. Left alone: all other arguments.

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
  let summary = "Expand memref.copy into loops";
  let description = [{
    Input: `memref.copy`. For strided memory, upstream lowers it to a call of
    MLIR's runner library, which a kernel library does not link. Output: loops
    that copy rows vector by vector, and the remainder of a row element by
    element. A copy between two function arguments is skipped at run time if both
    have the same address, as for an output that overwrites its input. Left
    alone: all other operations.

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
  let summary = "Convert memref.expand_shape to memref.reinterpret_cast";
  let description = [{
    Input: `memref.expand_shape` that splits a dimension into several dimensions
    of dynamic size, which upstream's `expand-strided-metadata` does not support.
    Output: `memref.reinterpret_cast`. Left alone: all other reshapes.

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

def PosencScalarizeTransfersPass
    : InterfacePass<"posenc-scalarize-transfers", "::mlir::FunctionOpInterface"> {
  let summary = "Convert strided transfers of rank 0 to scalar accesses";
  let description = [{
    Input: `vector.transfer_read` and `vector.transfer_write` of vectors of rank 0,
    in memory whose last dimension is not known to be contiguous, which happens
    where dimensions of size 1 are collapsed. Upstream lowers them only if it is
    contiguous. Output: `memref.load` and `memref.store`. Left alone: all other
    transfers.

    ```mlir
    func.func @f(%x: memref<1xf32, strided<[?]>>, %i: index) -> vector<f32> {
      %pad = arith.constant 0.0 : f32
      %y = vector.transfer_read %x[%i], %pad : memref<1xf32, strided<[?]>>, vector<f32>
      return %y : vector<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<1xf32, strided<[?]>>, %i: index) -> vector<f32> {
      %element = memref.load %x[%i] : memref<1xf32, strided<[?]>>
      %y = vector.broadcast %element : f32 to vector<f32>
      return %y : vector<f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencDeallocateBuffersPass
    : Pass<"posenc-deallocate-buffers", "::mlir::ModuleOp"> {
  let summary = "Insert bufferization.dealloc into functions without deallocations";
  let description = [{
    Input: functions on memrefs. Output, by upstream's
    `ownership-based-buffer-deallocation`: each `memref.alloc` is freed after its
    last use. Left alone: functions that already free memory, since upstream's
    pass cannot run twice, and functions that allocate and return no memory.

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
  let summary = "Move small allocations to the stack";
  let description = [{
    Input: `memref.alloc` whose buffer is used neither by calls nor by
    terminators. Output: a `memref.alloca` at the start of the function, which
    all iterations of a loop share; a `memref.dealloc` of the buffer is erased. A
    buffer of dynamic size gets its upper bound. Left alone: buffers without a
    known bound, buffers of more than 64 KiB (128 KiB if allocated in a loop), and
    buffers that would increase the stack of the function beyond 512 KiB, or
    beyond a quarter of `posenc.stack_limit`.

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
    Output: the buffers are views of one new argument, the workspace. Buffers of
    the same bytes that are not needed at the same time share memory. The
    kernel stores its size in bytes to another new argument, or -1 if computing
    the size overflows. If all buffers together have a static size of at most 32
    KiB, they are on the stack instead. Left alone: kernels in which the size of
    a buffer depends on more than the sizes of the arguments, for example on a
    scalar argument.

    ```
    func.func @f(%x: memref<?x64xf32, ...>, %y: memref<?x64xf32, ...>) attributes {posenc.abi = ...} {
      %a = memref.alloc(%n) : memref<?x64xf32>
      ...
      memref.dealloc %a : memref<?x64xf32>
    }
    ```
    becomes
    ```
    func.func @f(%x: ..., %y: ..., %workspace: memref<?xi8>, %size: memref<1xi64>)
        attributes {posenc.abi = ..., posenc.kernel = #posenc.kernel<measured = true, workspace = true>} {
      %a = memref.view %workspace[%offset][%n] : memref<?xi8> to memref<?x64xf32>
      memref.store %bytes, %size[%c0] : memref<1xi64>
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencForallToTasksPass
    : InterfacePass<"posenc-forall-to-tasks", "::mlir::FunctionOpInterface"> {
  let summary = "Divide the work of a kernel into tasks of equal size";
  let description = [{
    Input: kernels with `scf.forall` loops in their own block. Output: a kernel
    with a single `scf.forall` takes two more arguments, the index of a task and
    the number of tasks, and loops over the iterations of that task. Iterations
    are independent, so results do not depend on the number of tasks.

    Other kernels have phases: one for each `scf.forall`, and one for the
    operations between two of them. A phase is selected by one more argument, a
    memref with its index. Buffers that several phases use become an argument,
    too. Operations that every task can execute, such as the computation of
    sizes, belong to no phase. If a phase uses an SSA value of an earlier phase,
    or if there are more than 60 phases, the whole kernel is a single phase with
    one task.

    Left alone: functions that are not kernels, and loops within other loops.

    ```
    func.func @f(%x: memref<?x64xf32, ...>) attributes {posenc.abi = ...} {
      scf.forall (%i) in (%n) { ... }
    }
    ```
    becomes
    ```
    func.func @f(%x: memref<?x64xf32, ...>, %task: index, %tasks: index)
        attributes {posenc.abi = ..., posenc.kernel = #posenc.kernel<tasks = true>} {
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
  let summary = "Move stack buffers of a kernel to its workspace";
  let description = [{
    Input: a kernel with `workspace` in `posenc.kernel` that was divided by
    `posenc-forall-to-tasks`. Output: each `memref.alloca` of static shape and at
    least 256 bytes at the start of the function becomes a view of a new
    argument, which is private to each task and aligned to 64 bytes.
    `scratch_bytes` has the sizes of these arguments. Left alone: smaller
    buffers, buffers of dynamic size, and functions without a workspace.

    ```
    func.func @f(...) attributes {posenc.kernel = #posenc.kernel<workspace = true>} {
      %a = memref.alloca() : memref<256xf32>
    ```
    becomes
    ```
    func.func @f(..., %scratch: memref<1024xi8>) attributes {posenc.kernel = #posenc.kernel<scratch_bytes = [1024], workspace = true>} {
      %a = memref.view %scratch[%c0][] : memref<1024xi8> to memref<256xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencOutlineLoopsPass
    : Pass<"posenc-outline-loops", "::mlir::ModuleOp"> {
  let summary = "Outline the loops of functions with many loops";
  let description = [{
    Input: functions with more than eight loops in one block. LLVM's compile time
    grows with the square of their number, and the stack frame has the spills of
    all loops. Output: each loop is the body of a private function that is not
    inlined, together with the allocas that only this loop uses. Left alone:
    blocks with fewer loops.

    ```
    scf.for %i = %c0 to %n step %c1 { ... }   // and eight more
    ```
    becomes
    ```
    call @__part_of_f_0(%x, %n) : (memref<?xf32>, index) -> ()
    ...
    func.func private @__part_of_f_0(%x: memref<?xf32>, %n: index) attributes {passthrough = ["noinline"]} {
      scf.for %i = %c0 to %n step %c1 { ... }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def PosencSplitEmptyTensorsPass
    : InterfacePass<"posenc-split-empty-tensors", "::mlir::FunctionOpInterface"> {
  let summary = "Split empty tensors that many operations write to";
  let description = [{
    Input: functions on tensors, after CSE, which makes one `tensor.empty` of all
    with equal sizes, and one tensor of all equal zeros. Output: of an empty tensor
    in the block of the function, one for each operation that uses it; in a loop, of
    one with more than 8 uses, one for each 8 uses, in the order of the operations; and
    the same of a tensor that only repeats scalars (`linalg.fill`, constant vectors
    that are written, `scf.forall` of these), which is written again before the
    operations that use it. posenc-plan-workspace lets tensors share memory that are not
    needed at the same time, and the analysis of bufferization compares all uses of one
    buffer with each other, so its time grows with the third power of their number.
    Left alone: tensors in loops with fewer uses, whose buffers are reused as before, and
    those whose elements are computed.

    ```
    %0 = tensor.empty() : tensor<4x8xf32>   // two operations write to it
    ```
    becomes
    ```
    %0 = tensor.empty() : tensor<4x8xf32>   // the first one writes to it
    %1 = tensor.empty() : tensor<4x8xf32>   // the second one writes to it
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def PosencMergeFunctionsPass
    : Pass<"posenc-merge-functions", "::mlir::ModuleOp"> {
  let summary = "Merge private functions that are equal but for constants";
  let description = [{
    Input: private functions, such as the outlined loops of a model whose layers
    are equal. Output: of functions that are equal but for their names and the
    globals that they read, the first one, which all callers call. Globals that
    differ, such as weights, become arguments of it. Each distinct loop is then
    compiled once. Left alone: functions that nothing else is equal to, and those
    that are used otherwise than by `func.call`. No result changes.

    ```
    call @__part_of_f_0(%x) : (memref<?xf32>) -> ()
    call @__part_of_f_1(%y) : (memref<?xf32>) -> ()
    ...
    func.func private @__part_of_f_0(%x: memref<?xf32>) {
      %weights = memref.get_global @__constant_0 : memref<64xf32>
      ...
    func.func private @__part_of_f_1(%x: memref<?xf32>) {
      %weights = memref.get_global @__constant_1 : memref<64xf32>
      ...
    ```
    becomes
    ```
    %0 = memref.get_global @__constant_0 : memref<64xf32>
    call @__part_of_f_0(%x, %0) : (memref<?xf32>, memref<64xf32>) -> ()
    %1 = memref.get_global @__constant_1 : memref<64xf32>
    call @__part_of_f_0(%y, %1) : (memref<?xf32>, memref<64xf32>) -> ()
    ...
    func.func private @__part_of_f_0(%x: memref<?xf32>, %weights: memref<64xf32>) {
      ...
    ```
  }];
}

#endif // POSENC_CODEGEN_KERNELPASSES_TD
