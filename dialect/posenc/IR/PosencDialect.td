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

    Discardable attributes. The user writes some of them in the input, as the
    frontends of posenc-compile do; the others are written by one pass and read
    by another. Values with a `#` are described below.

    | attribute | on | value | written by | read by | meaning |
    |---|---|---|---|---|---|
    | `posenc.abi` | function | `#posenc.abi` | posenc-create-kernels | the tiling passes, posenc-bufferize-kernels, posenc-plan-workspace, posenc-forall-to-tasks, posenc-stream-stores, posenc-select-gpu-kernels, posenc-lower-launches, posenc-emit-c-interface, posenc-compile | the C signature. A function with this attribute is a kernel. |
    | `posenc.kernel` | function | `#posenc.kernel` | see its parameters | see its parameters | how the kernel's work is divided, and the arguments that it has besides its tensors |
    | `posenc.doc` | function | string | the user, posenc-create-kernels | posenc-emit-c-interface, posenc-compile | documentation for the C header and metadata, in lines |
    | `posenc.layers` | function | list of i64 | the user | posenc-emit-c-interface, posenc-compile | numbers of the layers of a model that the function is for, in ascending order |
    | `posenc.name` | argument, result | string | the user, posenc-pack-arguments | posenc-pack-arguments, posenc-create-kernels, posenc-compile | name in headers and metadata. posenc-emit-c-interface removes it. |
    | `posenc.unsigned` | argument, result | unit | the user | posenc-create-kernels | elements of i8 are u8 in the C signature. posenc-emit-c-interface removes it. |
    | `posenc.sizes` | argument | list of strings | the user | posenc-create-kernels | names of the dynamic sizes in headers and metadata, in order. A size that several arguments share has the name that the first of them gives. |
    | `posenc.packed` | argument | unit | the user | posenc-pack-arguments | callers pack this right-hand matrix of matrix products once, by the function `<function>_pack_<argument>` |
    | `posenc.layout` | argument | string | posenc-pack-arguments | posenc-create-kernels | name of the layout of a packed matrix; replaces `posenc.packed` |
    | `posenc.tasks_by` | `scf.forall` | `#posenc.tasks_by` | convert-posenc-attention-to-vector | posenc-forall-to-tasks | the tensors whose bytes determine the number of tasks of the function |
    | `posenc.shared_buffer` | `memref.alloca` | unit | convert-posenc-attention-to-vector, posenc-plan-workspace, posenc-promote-allocs-to-stack | posenc-forall-to-tasks | passes data from one parallel loop to another. Each task has its own copy of any other alloca. |
    | `posenc.streamed` | `linalg` tile | unit | posenc-decompose-rotations | posenc-vectorize-tiles | its stores are streaming stores |
    | `posenc.chip` | `scf.forall`, GPU kernel | `#posenc.chip` | posenc-nest-attention, convert-posenc-attention-to-gpu | convert-posenc-attention-to-gpu, posenc-compile | the architecture of NVIDIA GPUs that the kernel is for |
    | `posenc.kernel_type` | SPIR-V kernel | type | posenc-unroll-vectors | posenc-compile | the type of the original `gpu.func` |
    | `posenc.kernel_constants` | SPIR-V module | list of i32 | posenc-unroll-vectors | posenc-compile | the constants that kernels read, in words |
    | `posenc.gpu` | module | `#posenc.gpu` | posenc-attach-gpu | posenc-select-gpu-kernels, posenc-nest-attention, convert-posenc-attention-to-gpu | what kernels for GPUs may use |
    | `posenc.stack_limit` | module | i64, bytes | posenc-compile (`--stack-limit`) | posenc-create-kernels, posenc-promote-allocs-to-stack, posenc-compile | the stack that a function may need |
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
    /// The discardable attributes that the description lists.
    static constexpr ::llvm::StringLiteral kAbiAttrName = "posenc.abi";
    static constexpr ::llvm::StringLiteral kKernelAttrName = "posenc.kernel";
    static constexpr ::llvm::StringLiteral kDocAttrName = "posenc.doc";
    static constexpr ::llvm::StringLiteral kLayersAttrName = "posenc.layers";
    static constexpr ::llvm::StringLiteral kNameAttrName = "posenc.name";
    static constexpr ::llvm::StringLiteral kSizesAttrName = "posenc.sizes";
    static constexpr ::llvm::StringLiteral kPackedAttrName = "posenc.packed";
    static constexpr ::llvm::StringLiteral kLayoutAttrName = "posenc.layout";
    static constexpr ::llvm::StringLiteral kTasksByAttrName = "posenc.tasks_by";
    static constexpr ::llvm::StringLiteral kSharedBufferAttrName =
        "posenc.shared_buffer";
    static constexpr ::llvm::StringLiteral kStreamedAttrName =
        "posenc.streamed";
    static constexpr ::llvm::StringLiteral kChipAttrName = "posenc.chip";
    static constexpr ::llvm::StringLiteral kKernelTypeAttrName =
        "posenc.kernel_type";
    static constexpr ::llvm::StringLiteral kKernelConstantsAttrName =
        "posenc.kernel_constants";
    static constexpr ::llvm::StringLiteral kGpuAttrName = "posenc.gpu";
    static constexpr ::llvm::StringLiteral kStackLimitAttrName =
        "posenc.stack_limit";

  private:
    void registerAttributes();
  }];
}

#endif // POSENC_IR_POSENCDIALECT_TD
