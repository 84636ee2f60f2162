//===- PosencDialect.td - the posenc dialect ---------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_POSENCDIALECT_TD
#define POSENC_IR_POSENCDIALECT_TD

include "mlir/IR/OpBase.td"

def PosencDialect : Dialect {
  let name = "posenc";
  let cppNamespace = "::mlir::posenc";
  let summary = "Positional encodings";
  let description = [{
    The dialect represents positional encodings declaratively: by their
    frequencies, the lanes that form pairs, and the dimensions that carry a
    position. The operations are in destination-passing style and work on tensors
    and, after bufferization, on memrefs.

    Symbols used in the formulas: `b` the base (rope theta), `d` the rotary
    dimension, `i` a pair in `[0, d/2)`, `p` a position, `f_i` the frequency
    of pair `i` in radians per position, `att` the attention factor that
    multiplies both cos and sin.

    Precision: `cos(p*f_i)` and `sin(p*f_i)` are as if evaluated in real
    arithmetic, at every integer position; no library function is called.
    Products of f16 and bf16 tensors are computed in f32 and rounded once. The
    only exception is attention on bf16 on processors with the bf16 dot product
    (VDPBF16PS of AVX512-BF16): it rounds rotated rows and softmax weights to
    bf16, and accumulates in f32.

    Discardable attributes:

    | attribute | on | meaning |
    |---|---|---|
    | `posenc.abi` | function | the C signature of a kernel, a `#posenc.abi` |
    | `posenc.tasks` | function | the last two arguments are the index of a task and the number of tasks; the number follows from the bytes of the outputs, with the value `"inputs"` from those of the inputs that no output may overwrite, with `"all"` from both |
    | `posenc.by_all` | function | the bytes of all inputs and outputs determine the number of tasks |
    | `posenc.by_inputs` | `scf.forall` | the bytes of the inputs determine the number of tasks |
    | `posenc.shared_buffer` | `memref.alloca` | passes data from one parallel loop to another; any other alloca is memory of a task |
    | `posenc.streamed` | `linalg` tile | uses streaming stores |
    | `posenc.phases` | function | for each phase of a kernel, whether its tasks may run in parallel |
    | `posenc.measured` | function | the kernel computes the size of its workspace itself |
    | `posenc.shared` | function | bytes of the memory that all tasks of a call share |
    | `posenc.workspace` | function | the C entry points take a workspace |
    | `posenc.scratch` | function | bytes of each buffer that a call or a task has in the workspace |
    | `posenc.launches` | function | the last argument is the handle of the call for which GPU kernels are launched |
    | `posenc.doc` | function | documentation for the C header |
    | `posenc.layers` | function | numbers of the layers of a model that it is for |
    | `posenc.name` | argument, result | name in headers and metadata |
    | `posenc.sizes` | argument | names of the dynamic sizes, in order |
    | `posenc.packed` | argument | callers pack this right-hand matrix of matrix products once, by the function `<function>_pack_<argument>` |
    | `posenc.stack_limit` | module | bytes of stack that a function may need |
    | `posenc.kernel_type` | SPIR-V kernel | the type of the original `gpu.func` |
    | `posenc.kernel_constants` | SPIR-V module | the constants that kernels read |
  }];
  // Dialects that folds and canonicalizations create operations of.
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On a function: its C signature, a `#posenc.abi`.
    static constexpr ::llvm::StringLiteral kAbiAttrName = "posenc.abi";
    /// On a function whose last two arguments are the index of a task and the
    /// number of tasks. The value names the tensors whose bytes determine the
    /// number of tasks: a unit for the outputs, "inputs", or "all" for both.
    static constexpr ::llvm::StringLiteral kTasksAttrName = "posenc.tasks";
    /// On a function with `posenc.tasks` whose work has several phases: a list
    /// of booleans, for each phase whether its tasks may run in parallel;
    /// otherwise the phase has one task. The argument before the index of the
    /// task is a memref of one i64, the index of the phase. If it is -1, the
    /// function only stores the bytes of its workspace there (see
    /// `posenc.measured`), or 0.
    static constexpr ::llvm::StringLiteral kPhasesAttrName = "posenc.phases";
    /// A unit on a function with phases: its first argument after those of
    /// tensors is the workspace that all tasks of all phases share. Its size
    /// depends on the sizes of the call.
    static constexpr ::llvm::StringLiteral kMeasuredAttrName =
        "posenc.measured";
    /// A unit on a function whose last argument is the handle of the call for
    /// which it launches GPU kernels.
    static constexpr ::llvm::StringLiteral kLaunchesAttrName =
        "posenc.launches";
    /// A string on a GPU kernel, or on the loops that it is made from: the only
    /// architecture that it is for, such as "sm_90a".
    static constexpr ::llvm::StringLiteral kChipAttrName = "posenc.chip";
    /// On a SPIR-V kernel: the type of the original `gpu.func`.
    static constexpr ::llvm::StringLiteral kKernelTypeAttrName =
        "posenc.kernel_type";
    /// On a module of SPIR-V kernels: their constants, as words.
    static constexpr ::llvm::StringLiteral kKernelConstantsAttrName =
        "posenc.kernel_constants";
    /// An i64 on a function with phases: the bytes of a memref that all tasks of
    /// a call share, its argument after those of tensors and of
    /// `posenc.measured`.
    static constexpr ::llvm::StringLiteral kSharedAttrName = "posenc.shared";
    /// A unit on a function: its C entry points take a workspace.
    static constexpr ::llvm::StringLiteral kWorkspaceAttrName =
        "posenc.workspace";
    /// A list of i64 on a function: the bytes of memrefs that replace stack
    /// memory of a call or of a task, arguments after those of tensors and of
    /// `posenc.shared`.
    static constexpr ::llvm::StringLiteral kScratchAttrName = "posenc.scratch";
    /// An i64 on a module: the bytes of stack that any of its functions may need
    /// (`--stack-limit`).
    static constexpr ::llvm::StringLiteral kStackLimitAttrName =
        "posenc.stack_limit";
    /// A string on a function argument or result: its name in headers and
    /// metadata.
    static constexpr ::llvm::StringLiteral kNameAttrName = "posenc.name";
    /// An array of strings on a function argument: the names of its dynamic
    /// sizes in headers and metadata, in order. A size that several arguments
    /// share has the name that the first of them gives.
    static constexpr ::llvm::StringLiteral kSizesAttrName = "posenc.sizes";
    /// On a function argument that is a matrix: a unit if callers are to pack it;
    /// after posenc-pack-arguments, the name of its layout.
    static constexpr ::llvm::StringLiteral kPackedAttrName = "posenc.packed";
    /// A string on a function: its documentation for the C header, in lines.
    static constexpr ::llvm::StringLiteral kDocAttrName = "posenc.doc";
    /// A list of i64 on a function: the numbers of the layers of a model that it
    /// is for, in ascending order.
    static constexpr ::llvm::StringLiteral kLayersAttrName = "posenc.layers";

    /// A unit on a function: the bytes of all inputs and outputs determine the
    /// number of tasks, because it may read much more than it writes, or the
    /// reverse: matrix products and reductions.
    static constexpr ::llvm::StringLiteral kByAllAttrName = "posenc.by_all";
    /// A unit on an `scf.forall`: its input bytes determine the number of tasks
    /// instead of its output bytes.
    static constexpr ::llvm::StringLiteral kByInputsAttrName =
        "posenc.by_inputs";
    /// A unit on a `memref.alloca` that passes data from one parallel loop to
    /// another. Any other alloca is scratch memory, of which each task has its
    /// own copy.
    static constexpr ::llvm::StringLiteral kSharedBufferAttrName =
        "posenc.shared_buffer";
    /// A unit on a tile of linalg that uses streaming stores.
    static constexpr ::llvm::StringLiteral kStreamedAttrName =
        "posenc.streamed";

  private:
    void registerAttributes();
  }];
}

#endif // POSENC_IR_POSENCDIALECT_TD
