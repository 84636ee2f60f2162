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
    The dialect represents positional encodings by their meaning: which
    frequencies, which lanes pair up, which dimensions carry a position. The
    operations are in destination style and work on tensors and, after
    bufferization, on memrefs.

    Symbols used in the formulas: `b` the base (rope theta), `d` the rotary
    dimension, `i` a pair in `[0, d/2)`, `p` a position, `f_i` the frequency
    of pair `i` in radians per position, `att` the attention factor that
    multiplies both cos and sin.

    Precision: `cos(p*f_i)` and `sin(p*f_i)` are as if evaluated in real
    arithmetic, at every integer position; no library function is called.
    Products of f16 and bf16 tensors are formed in f32 and rounded once; only
    attention on bf16 rounds what it has rotated and its weights to bf16 where
    the processor has products of such pairs (AVX512-BF16), and sums in f32.

    Attributes of functions: `posenc.abi`, a `#posenc.abi`, is the C signature
    of a kernel; `posenc.chunked` says that its last two arguments are a chunk's
    index and the number of chunks that its work is split into, which follows
    from the size of its outputs, or with `posenc.chunked = "inputs"` from that
    of the inputs that no output may be; `posenc.shared` is how many bytes of
    memory its chunks share, the argument before those two; `posenc.workspace`
    that its C entry points take a workspace, and `posenc.scratch` how many bytes each
    buffer has that a call or a chunk finds there, arguments behind the shared
    memory. On a module, `posenc.stack_limit` is how many bytes of stack a function
    may need.
    `posenc.launches`
    says that its last argument is the call for which it launches kernels of a GPU. Of a kernel in
    SPIR-V `posenc.kernel_type` is the type of the `gpu.func` it was, and
    `posenc.kernel_constants` on a module what its kernels read. The string
    `posenc.doc` on a function is what headers say of it. The string
    `posenc.name` on an argument or a result is its name in headers and
    metadata; the strings `posenc.sizes` on an argument are the names of its
    dynamic sizes, in order. The unit `posenc.packed` on an argument that is the
    second matrix of products asks callers to pack it, once, by the function
    `<function>_pack_<argument>` that the library then has.
  }];
  // What folds and canonicalizations create.
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
  let hasConstantMaterializer = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Discardable attribute of a function: the `#posenc.abi` of its C entry point.
    static constexpr ::llvm::StringLiteral kAbiAttrName = "posenc.abi";
    /// Discardable attribute of a function whose last two arguments are a chunk's
    /// index and the number of chunks its work is split into: a unit if that
    /// follows from its outputs, "inputs", or "all" for both.
    static constexpr ::llvm::StringLiteral kChunkedAttrName = "posenc.chunked";
    /// Discardable attribute of a function that is chunked and does one thing
    /// after the other, a list of booleans: for each phase whether its chunks may
    /// run at the same time; else there is one chunk. Its argument before the
    /// chunk's index is a memref of one i64, the number of the phase, or -1: then
    /// the function only stores there the bytes of `posenc.measured`, or 0.
    static constexpr ::llvm::StringLiteral kPhasesAttrName = "posenc.phases";
    /// Discardable unit attribute of a function that has phases: its first
    /// argument after those of tensors is memory that all chunks of all phases
    /// share, as large as sizes of the call ask for.
    static constexpr ::llvm::StringLiteral kMeasuredAttrName =
        "posenc.measured";
    /// Discardable unit attribute of a function whose last argument is the call
    /// for which it launches kernels of a GPU.
    static constexpr ::llvm::StringLiteral kLaunchesAttrName =
        "posenc.launches";
    /// Discardable attribute of a kernel in SPIR-V: the type of the `gpu.func`
    /// that it was.
    static constexpr ::llvm::StringLiteral kKernelTypeAttrName =
        "posenc.kernel_type";
    /// Discardable attribute of a module of kernels in SPIR-V: their constants,
    /// as words.
    static constexpr ::llvm::StringLiteral kKernelConstantsAttrName =
        "posenc.kernel_constants";
    /// Discardable i64 attribute of a function that has phases: the bytes of a
    /// memref that all chunks of a call share, its argument after those of tensors
    /// and of `posenc.measured`.
    static constexpr ::llvm::StringLiteral kSharedAttrName = "posenc.shared";
    /// Discardable unit attribute of a function: its C entry points take a workspace.
    static constexpr ::llvm::StringLiteral kWorkspaceAttrName =
        "posenc.workspace";
    /// Discardable attribute of a function, a list of i64: the bytes of memrefs in
    /// which a call, or a chunk of one, keeps what it would keep on the stack; its
    /// arguments after those of tensors and of `posenc.shared`.
    static constexpr ::llvm::StringLiteral kScratchAttrName = "posenc.scratch";
    /// Discardable i64 attribute of a module: the bytes of stack that any of its
    /// functions may need, as `--stack-limit` says it.
    static constexpr ::llvm::StringLiteral kStackLimitAttrName =
        "posenc.stack_limit";
    /// Discardable string attribute of a function argument or result: its name
    /// in headers and metadata.
    static constexpr ::llvm::StringLiteral kNameAttrName = "posenc.name";
    /// Discardable attribute of a function argument: an array of strings, the
    /// names of its dynamic sizes in headers and metadata, in order. A size that
    /// several arguments share has the name that the first of them gives.
    static constexpr ::llvm::StringLiteral kSizesAttrName = "posenc.sizes";
    /// Discardable attribute of a function argument, a matrix: a unit if callers
    /// are to pack it, and its layout, a string, once the argument is so.
    static constexpr ::llvm::StringLiteral kPackedAttrName = "posenc.packed";
    /// Discardable string attribute of a function: what the C header says of
    /// it, in lines.
    static constexpr ::llvm::StringLiteral kDocAttrName = "posenc.doc";

  private:
    void registerAttributes();
  }];
}

#endif // POSENC_IR_POSENCDIALECT_TD
