//===- Passes.td - code generation -------------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_PASSES_TD
#define POSENC_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

/// Dialects of the loops and tiles that passes on linalg create.
defvar kTilingDialects = [
  "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
  "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
  "::mlir::tensor::TensorDialect"
];

def PosencCreateKernelsPass
    : Pass<"posenc-create-kernels", "::mlir::ModuleOp"> {
  let summary = "Give public functions destinations and a C signature";
  let description = [{
    A public function on tensors becomes a kernel: its results become memref
    arguments that the operations write directly, and `posenc.abi` records its
    C signature. Two dynamic dimensions are one size of that signature if the
    operations of the function require them to be equal; a result's size that
    follows from the arguments is not passed. Bufferization comes after this
    pass: it could turn a dynamically shaped result into an allocation.
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
    Upstream's `one-shot-bufferize` with function boundaries, except for their
    layouts. The last dimension of an argument is contiguous and all others
    have strides of their own, so that one kernel serves the views that a caller
    has. The memory of a kernel's argument begins at its pointer; private
    functions also take and return what begins within a buffer.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
}

class Posenc_TuningOption<string name, string flag, string description>
    : Option<name, flag, "uint64_t",
             "::mlir::posenc::Tuning()." # name, description>;

// As in Tuning.def, which says the same for pipelines and files.
defvar Posenc_TuningOptions = [
  Posenc_TuningOption<"prefetchCache", "prefetch-cache",
                      "Level of the cache that rows and cached keys are "
                      "prefetched into: 1 or 2">,
  Posenc_TuningOption<"prefetchInOrder", "prefetch-in-order",
                      "How many bytes ahead of a load rows in order are "
                      "prefetched; 0: not at all">,
  Posenc_TuningOption<"streamsInOrder", "streams-in-order",
                      "From how many places in turn rows in order are taken">,
  Posenc_TuningOption<"prefetchDistance", "prefetch-distance",
                      "How many bytes ahead of a load rows apart are "
                      "prefetched; 0: not at all">,
  Posenc_TuningOption<"streams", "streams",
                      "From how many places in turn rows apart are taken">,
  Posenc_TuningOption<"streamAhead", "stream-ahead",
                      "How many bytes ahead of a load rows are prefetched "
                      "where they are taken from several places">,
  Posenc_TuningOption<"narrowStreams", "narrow-streams",
                      "As streams, for elements of 16 bits that are written "
                      "past the cache">,
  Posenc_TuningOption<"narrowAhead", "narrow-stream-ahead",
                      "As stream-ahead, for elements of 16 bits that are "
                      "written past the cache">,
  Posenc_TuningOption<"blockPositions", "block-positions",
                      "For how many positions to compute cos and sin before "
                      "the rows of the first are rotated">,
  Posenc_TuningOption<"smallBlockPositions", "small-block-positions",
                      "For how many positions at most where the rows of that "
                      "many take less than stream-block-bytes">,
  Posenc_TuningOption<"blockBelow", "block-below",
                      "Compute cos and sin for several positions where the "
                      "rows of a position have at most so many bytes">,
  Posenc_TuningOption<"streamBlockBytes", "stream-block-bytes",
                      "Take rows from several places where those of a block "
                      "of positions have at least so many bytes">,
  Posenc_TuningOption<"streamFrom", "stream-from",
                      "Write tensors of so many bytes and more past the "
                      "cache; 0: never">,
  Posenc_TuningOption<"streamTablesFrom", "stream-tables-from",
                      "As stream-from, for tables of cos and sin">,
  Posenc_TuningOption<"prefetchFrom", "prefetch-from",
                      "Prefetch in tensors of so many bytes and more">,
  Posenc_TuningOption<"rowVectorBytes", "row-vector-bytes",
                      "Bytes of the vectors that rotate rows and compute "
                      "tables, at most those of the target">,
  Posenc_TuningOption<"decodePrefetches", "decode-prefetches",
                      "How often attention of few queries prefetches each line "
                      "of a cache with heads before tokens">,
  Posenc_TuningOption<"decodeRowPrefetches", "decode-row-prefetches",
                      "As decode-prefetches, for keys of a cache with tokens "
                      "before heads">,
  Posenc_TuningOption<"attentionQueries", "attention-queries",
                      "The most queries whose results a task of attention "
                      "computes at a time">,
  Posenc_TuningOption<"attentionPrefetch", "attention-prefetch",
                      "Whether attention of many queries prefetches the next "
                      "tile's keys and values: 0 or 1">
];

def PosencTilePositionsPass
    : InterfacePass<"posenc-tile-positions", "::mlir::FunctionOpInterface"> {
  let summary = "Tile operations on tensors to one position or a few each";
  let description = [{
    Every operation of the dialect becomes an `scf.forall` over the grid of its
    positions, with one position in each iteration, or a block of them for a
    rope of small rows, and elementwise producers of its operands are computed
    there.
  }];
  let options = Posenc_TuningOptions;
  let dependentDialects = kTilingDialects;
}

def PosencPackArgumentsPass
    : Pass<"posenc-pack-arguments", "::mlir::ModuleOp"> {
  let summary = "Let callers pack matrices that are posenc.packed";
  let description = [{
    An argument that is `posenc.packed` and the second matrix of products becomes
    panels of 32 columns, panels x k x columns, from which `linalg.unpack` makes
    the matrix; posenc-tile-contractions reads the panels. A function
    `<function>_pack_<argument>` makes panels of a matrix.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencDecomposeMovesPass
    : InterfacePass<"posenc-decompose-moves", "::mlir::FunctionOpInterface"> {
  let summary = "Split pack, unpack, pad and concat on tensors into copies";
  let description = [{
    By upstream's patterns: a pack is a pad, a reshape and a transpose, an unpack
    the reverse, a pad a fill and an insertion, a concat insertions. An operation
    whose result nothing reads goes.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencWidenSumsPass
    : InterfacePass<"posenc-widen-sums", "::mlir::FunctionOpInterface"> {
  let summary = "Sum f16 and bf16 in f32";
  let description = [{
    A reduction of linalg that adds to a result of f16 or bf16 becomes one of f32,
    of which an operation of its own rounds the result. A product that is added is
    one of f32, too. Products of matrices are left alone: their tiles have sums of
    f32.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencFuseElementwisePass
    : InterfacePass<"posenc-fuse-elementwise", "::mlir::FunctionOpInterface"> {
  let summary = "Fuse chains of elementwise operations of linalg";
  let description = [{
    An elementwise operation becomes part of its only user, if that has as many
    loops; named operations become `linalg.generic` for this. Products of
    matrices are left alone.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencReuseOperandsPass
    : InterfacePass<"posenc-reuse-operands", "::mlir::FunctionOpInterface"> {
  let summary = "Let elementwise operations write over operands that end there";
  let description = [{
    An elementwise `linalg.generic` that is the last to read an input of the type
    of its result takes that as its destination, and what computes the input
    begins in the destination that the operation had. Without this, the input
    would have memory of its own. An input of at most 16 KiB that other operations
    read as well is left alone: it stays in the cache, and a destination that is
    written once can be stored past the caches.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencFuseRowsPass
    : InterfacePass<"posenc-fuse-rows", "::mlir::FunctionOpInterface"> {
  let summary = "Fuse operations that need the same rows of each other";
  let description = [{
    Elementwise operations, reductions of rows and tables of positions that
    follow each other become one `scf.forall` over rows, in which the results
    that they leave for each other are of one row. A producer that others use
    afterwards stays a result of the loop. Operations on which nothing is fused
    are left alone.
  }];
  let dependentDialects = kTilingDialects;
}

def PosencTileInnerProductsPass
    : InterfacePass<"posenc-tile-inner-products",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile products of cached matrices to products of registers";
  let description = [{
    A contraction of linalg that stands in a loop, of two matrices of a known
    size that fit into the caches, becomes loops over tiles of its rows and
    columns whose sums fit into registers. Matrices of another type than the
    sums, and a second matrix whose columns are not contiguous, are copied in
    front of the loops that do not change them. An elementwise operation that
    alone uses the product is computed tile by tile, too.

    With `bf16-dots`, for vectors of 64 bytes, matrices of bf16 are copied as
    words of two elements, as `posenc-tile-contractions` does.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
           "Bytes of the widest vector of the target">,
    Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
           "The target adds products of pairs of bf16 to f32 (VDPBF16PS)">
  ];
  let dependentDialects = kTilingDialects # ["::mlir::vector::VectorDialect"];
}

def PosencTileContractionsPass
    : InterfacePass<"posenc-tile-contractions",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile products of matrices to products of registers";
  let description = [{
    A contraction of linalg with one dimension each of rows, columns and the sum
    becomes an `scf.forall` over blocks of rows and panels of columns. In each,
    parts of the panel are copied to scratch, and each tile of rows is a loop
    over the sum, of a `linalg.generic` of as many rows and columns as fit into
    registers. Elements are sums in the order of the reduction, whatever the
    tiles are; f16 and bf16 are extended to the type of the sums first.

    With `bf16-dots`, for vectors of 64 bytes, matrices of bf16 are copied as
    words of two elements, and a step of the loop is a `vector.contract` of pairs,
    which `posenc-lower-dots` turns into bf16 dot products. The two elements of a
    pair are 32 apart in the order of the sum: element j of each 64 and element
    j + 32.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
           "Bytes of the widest vector of the target">,
    Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
           "The target adds products of pairs of bf16 to f32 (VDPBF16PS)">
  ];
  let dependentDialects = kTilingDialects # ["::mlir::vector::VectorDialect"];
}

def PosencTileElementwisePass
    : InterfacePass<"posenc-tile-elementwise",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile elementwise operations of linalg to vectors";
  let description = [{
    Operations that compute every element on its own become loops over rows and,
    in these, over the elements of a vector; the rest of a row is an operation
    apart. Operations of a function's own block run in parallel.
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
           "Bytes of the widest vector of the target">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencTileReductionsPass
    : InterfacePass<"posenc-tile-reductions", "::mlir::FunctionOpInterface"> {
  let summary = "Tile reductions of rows to partial results in vectors";
  let description = [{
    A reduction of linalg along the rows of an input becomes, for each row, a
    loop over partial results and a reduction of these. Rows of at least 256 f32
    or 128 f64, and rows of unknown sizes, have 64 or 32 partial results; shorter
    rows have 16. The number is the same for all targets, since it decides how
    sums round.
  }];
  let dependentDialects = kTilingDialects;
}

def PosencVectorizeLinalgPass
    : InterfacePass<"posenc-vectorize-linalg",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Turn static tiles of linalg into vectors";
  let description = [{
    Small operations within loops become vectors by upstream's vectorizer, and
    accumulators become vectors that loops carry. Contractions of vectors are
    outer products.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::ub::UBDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencLowerDotsPass
    : InterfacePass<"posenc-lower-dots", "::mlir::FunctionOpInterface"> {
  let summary = "Turn contractions of pairs of bf16 into dot products";
  let description = [{
    Input: `vector.contract` of pairs of bf16 (rows x 2 and columns x 2) added to
    f32 (rows x columns), for a multiple of 16 columns. Output:
    `x86vector.avx512.dot`, one for each row and 16 columns. Other operations stay
    as they are. The instruction rounds as two fused multiply-adds would, but
    reads subnormal numbers as zero.
  }];
  let dependentDialects = ["::mlir::vector::VectorDialect",
                           "::mlir::x86vector::X86VectorDialect"];
}

def PosencCopyToLoopsPass
    : InterfacePass<"posenc-copy-to-loops", "::mlir::FunctionOpInterface"> {
  let summary = "Turn memref.copy into loops";
  let description = [{
    A copy of strided memory is otherwise a call of a run-time library that a
    kernel library does not have. Rows are copied by vectors. From one argument
    of a function to another there is no copy if both are the same memory.
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
    Where one dimension is split into several whose sizes are dynamic, which
    upstream's `expand-strided-metadata` does not expand. Others are left alone.

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
  let summary = "Insert bufferization.dealloc where nothing is freed yet";
  let description = [{
    Upstream's `ownership-based-buffer-deallocation` for the functions that
    allocate and free nothing; it refuses one that frees, such as one that it
    was applied to before, and one whose loops have become branches.
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
    An allocation of at most 64 KiB whose address stays within its block becomes
    an `alloca` at the start of the function, one for all iterations, as long as
    there are no more than 512 KiB of them. A dynamic size counts as the largest
    that it can be.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencMoveAllocasToWorkspacePass
    : InterfacePass<"posenc-move-allocas-to-workspace", "::mlir::FunctionOpInterface"> {
  let summary = "Move the memory of a kernel from the stack to its workspace";
  let description = [{
    In a function with `posenc.workspace`, each `memref.alloca` of 256 bytes or
    more and of static shape at the start becomes a view of a new argument, whose
    bytes `posenc.scratch` lists and which is aligned to 64. It comes after
    `posenc-forall-to-tasks`: each chunk of a call has buffers of its own.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencLegalizeI1Pass : Pass<"posenc-legalize-i1"> {
  let summary = "Load and store i1 as bytes";
  let description = [{
    An i1 in memory is a byte of which any value but 0 is true, as callers may
    have it; LLVM takes any other byte than 0 and 1 for poison. Loads and stores
    of i1, and of vectors of it, which LLVM would pack into bits, become those of
    bytes. In the LLVM dialect.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def PosencOutlineLoopsPass
    : Pass<"posenc-outline-loops", "::mlir::ModuleOp"> {
  let summary = "Put the loops of functions that have many into functions";
  let description = [{
    LLVM takes a time that grows with the square of the number of a function's
    loops, and its frame holds what all of them need on the stack. Where more
    than eight loops stand in one block, each becomes a private function, which
    is not inlined, and takes along the memory on the stack that only it uses.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def PosencExpandArithPass : Pass<"posenc-expand-arith"> {
  let summary = "Turn operations of arith that would be calls into others";
  let description = [{
    A kernel library has neither libm nor the runtime library of a compiler, so
    that no operation may become a call of one. On scalars and vectors,
    `truncf` of f64 to f16 and bf16, and conversions of integers to them, become
    conversions to f32 that round to odd and a second that rounds to nearest:
    the result is rounded once. `remf` becomes a loop of exact steps. `maxnumf`
    and `minnumf` of f16 and bf16 become comparisons in f32. Divisions of integers of
    more than 64 bits, their conversions from and to floats, and arithmetic of
    floats other than f16, bf16, f32 and f64 are errors.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencExpandBF16Pass : Pass<"posenc-expand-bf16"> {
  let summary = "Turn conversions between f32 and bf16, and products of pairs of "
                "bf16, into other arithmetic";
  let description = [{
    To the bit what AVX512-BF16 has instructions for, but for conversions, which
    keep subnormal numbers.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencExpandF8Pass : Pass<"posenc-expand-f8"> {
  let summary = "Turn conversions from and to f8 into other arithmetic";
  let description = [{
    CPUs have none of `f8E4M3FN` and `f8E5M2`. To f32 they go by f16, which has
    all of their numbers; from f32 they are rounded once, to nearest, ties to
    even, as `arith.truncf` does it: numbers that are too large become NaN in
    `f8E4M3FN` and infinite in `f8E5M2`. Other floats go by f32. What only moves
    f8 is left alone: it becomes i8 in the LLVM dialect.

    ```mlir
    func.func @widen(%x: vector<8xf8E5M2>) -> vector<8xf32> {
      %0 = arith.extf %x : vector<8xf8E5M2> to vector<8xf32>
      return %0 : vector<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @widen(%x: vector<8xf8E5M2>) -> vector<8xf32> {
      %c8 = arith.constant dense<8> : vector<8xi16>
      %0 = arith.bitcast %x : vector<8xf8E5M2> to vector<8xi8>
      %1 = arith.extui %0 : vector<8xi8> to vector<8xi16>
      %2 = arith.shli %1, %c8 : vector<8xi16>
      %3 = arith.bitcast %2 : vector<8xi16> to vector<8xf16>
      %4 = arith.extf %3 : vector<8xf16> to vector<8xf32>
      return %4 : vector<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencLegalizeBF16Pass : Pass<"posenc-legalize-bf16"> {
  let summary = "Turn bf16 of the LLVM dialect into i16";
  let description = [{
    Where bf16 is only moved: without AVX512-BF16 the backend has no vectors of
    it, and makes calls of what optimizations do with them. A module that
    computes with bf16 is left as it is.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def PosencExpandMathPass : Pass<"posenc-expand-math"> {
  let summary = "Expand functions of math into arithmetic";
  let description = [{
    A kernel library has no libm and GPU kernels no libdevice. Every function of
    f32 and f64 is expanded, on scalars and on vectors, within 4 units in the
    last place for all finite arguments and with the special values of IEEE 754;
    `sin`, `cos` and `tan` reduce arguments of any size exactly. The largest
    errors measured are in docs/numerics.md. Results have the same bits on all
    targets that have a fused multiply-add, and with `avx512` or without. Functions
    of f16 and bf16 are those of f32, rounded once.

    - Expanded: `acos` `acosh` `asin` `asinh` `atan` `atan2` `atanh` `cbrt`
      `clampf` `cos` `cosh` `erf` `erfc` `exp` `exp2` `expm1` `fpowi` `isfinite`
      `isinf` `isnan` `isnormal` `log` `log10` `log1p` `log2` `powf` `rsqrt` `sin`
      `sincos` `sinh` `tan` `tanh`, and `ipowi` with a constant exponent from 0 to
      64. Powers with a constant integer exponent up to 64 in size, or with
      exponent 0.5 or -0.5, are products, quotients and square roots.
    - Left to the target, which has instructions: `absf` `absi` `ceil`
      `copysign` `ctlz` `ctpop` `cttz` `floor` `fma` `round` `roundeven` `sqrt`
      `trunc`.
    - Errors: other exponents of `ipowi`, and other types.

    Fast-math flags of functions are dropped: a flag does not make a function
    less accurate. Of those of `arith`, `reassoc` and `contract` are kept.
    Operations on tensors are left alone.

    ```mlir
    func.func @f(%x: f32) -> f32 {
      %r = math.rsqrt %x : f32
      return %r : f32
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f32) -> f32 {
      %one = arith.constant 1.0 : f32
      %root = math.sqrt %x : f32
      %r = arith.divf %one, %root : f32
      return %r : f32
    }
    ```
  }];
  let options = [
    Option<"avx512", "avx512", "bool", /*default=*/"false",
           "Multiply vectors of 64 bytes by powers of two by AVX-512">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

defvar Posenc_ToVectorOptions = !listconcat(
  [Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
          "Bytes of a hardware vector: 16, 32 or 64">],
  Posenc_TuningOptions);

def PosencStreamStoresPass
    : InterfacePass<"posenc-stream-stores", "::mlir::FunctionOpInterface"> {
  let summary = "Store large results past the caches";
  let description = [{
    A loop of a kernel that writes vectors to an output, and reads nothing there,
    gets a version for outputs of at least `stream-from` bytes whose rows are
    aligned and which are no inputs: its stores are nontemporal, as vectors of
    `vector.store`.
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencPrefetchRowsPass
    : InterfacePass<"posenc-prefetch-rows", "::mlir::FunctionOpInterface"> {
  let summary = "Prefetch rows while the rows before them are computed";
  let description = [{
    Input: loops over rows of an argument that read vectors of each row in
    several loops over columns. Output: the last of these loops over columns also
    prefetches a row that follows: the one that begins `prefetch-distance` bytes
    behind, or the next one where rows are longer. Rows that are read once are
    left alone.
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencPrefetchPanelsPass
    : InterfacePass<"posenc-prefetch-panels", "::mlir::FunctionOpInterface"> {
  let summary = "Prefetch the next part of a panel while a part is used";
  let description = [{
    Input: a loop that carries vectors and reads a whole row of an argument in
    each iteration, one after the other, inside a loop that reads the same rows
    in all its iterations: the loops over a sum and over register tiles of a
    product with a packed matrix. Output: each iteration of the outer loop also
    prefetches a share of the rows that follow, as many as the inner loop reads.
    Rows that are read once are left alone.
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

class Posenc_ToVectorPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
  let options = Posenc_ToVectorOptions;
}

def PosencDecomposeRotationsPass
    : Posenc_ToVectorPass<"posenc-decompose-rotations"> {
  let summary = "Turn rope and rotate on memrefs into loops of linalg tiles";
  let description = [{
    Input: `posenc.rope` and `posenc.rotate` on memrefs, usually tiles of some
    positions. Output: for each position, code that stores the cos and sin of all
    pairs on the stack; then loops over all rows, whose body is a
    `linalg.generic` on views of one cache line of pairs: `ins` both lanes of the
    pairs, cos and sin, `outs` both lanes. The pairing decides the views alone: `half` reads the lanes of a pair from two
    halves of the row, `interleaved` reads every second lane. Of bf16 the even and
    the odd pairs of a `half` row are two parts of one operation, since
    `posenc-vectorize-tiles` takes a row apart like that. A destination may be
    its input. Prefetches, streaming stores (the attribute `streamed`) and the
    order of rows follow from the tuning options and, at run time, from the sizes
    and addresses of the tensors. Other operations stay as they are.
  }];
}

def PosencVectorizeTilesPass
    : Posenc_ToVectorPass<"posenc-vectorize-tiles"> {
  let summary = "Turn small elementwise linalg on rows of memrefs into vectors";
  let description = [{
    Input: elementwise linalg operations whose operands are one-dimensional
    `memref.subview`s, and whose results have at most 64 bytes each. Output:
    `vector.load`, arithmetic on hardware vectors, and `vector.store`; all
    elements are read before any is written. Accesses are as aligned as a
    `memref.assume_alignment` of the view says. Two views that take every second element in turn are loaded and
    stored as one vector; with `zip` it is taken apart only where the two differ
    in what is computed. Stores of an operation with the attribute `streamed` are
    nontemporal. Other operations stay as they are.
  }];
  let options = !listconcat(Posenc_ToVectorOptions, [
    Option<"zip", "zip", "bool", /*default=*/"true",
           "Leave out shuffles that AVX has few units for">
  ]);
}

def ConvertPosencTablesToVectorPass
    : Posenc_ToVectorPass<"convert-posenc-tables-to-vector"> {
  let summary = "Convert sincos and sinusoidal on memrefs to vectors";
}

def ConvertPosencAttentionToVectorPass
    : Posenc_ToVectorPass<"convert-posenc-attention-to-vector"> {
  let summary = "Convert attention on memrefs to vectors";
  let description = [{
    An `scf.forall` over the batch, some query heads of each key head, and tiles
    of queries. A task brings the keys and values to the stack, some at a time,
    as rows in f32, normed and rotated where the operation says so, and never
    reads beyond a tensor; the lanes of vectors run along queries. Keys that no
    query of a group sees are skipped, and masks are applied only where some
    queries see a key and others do not.

    With `bf16-dots`, for vectors of 64 bytes, products of bf16 are those of
    pairs, by `x86vector.avx512.dot`: queries, rotated or normed keys, and
    weights are rounded to bf16, sums are f32. That is not done where logarithms
    of sums are asked for, nor for an odd head.

    Up to 32 tokens, or 16 of bf16, go another way, where their number is known or when they are
    counted, but not where the keys are known to be theirs: keys and values are
    read where they are, once for all tokens and all heads of a key head, unless
    there are very many heads. Each entry of packed tokens has its own way. Where
    heads are few the keys are parts, as many as there are keys for, whose sums
    are merged in their order: results do not depend on who does which part.
    Those of packed tokens are not.

    Operations that this does not serve are left as they are, with a remark:
    f64, heads wider than 256, a number of heads that is not known, and
    functions in regions that would be calls.
  }];
  // Of which some loops have annotations.
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"];
  let options = !listconcat(Posenc_ToVectorOptions, [
    Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
           "Compute attention of bf16 by products of pairs">
  ]);
}

def PosencPlanWorkspacePass
    : InterfacePass<"posenc-plan-workspace", "::mlir::FunctionOpInterface"> {
  let summary = "Place a kernel's intermediate buffers in one that it is given";
  let description = [{
    Every `memref.alloc` of a kernel's own block becomes part of a buffer of
    bytes, one more argument, and the kernel stores to another one how many bytes
    that needs, or -1 if sums or products of sizes overflow. A few small buffers
    are allocated on the stack instead. A kernel is left alone where a buffer's
    size does not follow from those of its arguments, or a scalar gives one.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencForallToTasksPass
    : InterfacePass<"posenc-forall-to-tasks", "::mlir::FunctionOpInterface"> {
  let summary = "Let a kernel do one of several equal parts of its work";
  let description = [{
    A kernel whose work is one `scf.forall` gets two more arguments, a chunk's
    index and the number of chunks, and loops over that part of the iterations.
    Iterations are independent, so results do not depend on the number.

    Other kernels have phases, one for each `scf.forall` and one for what stands
    between two of them, and do the one whose number is in a memref, one more
    argument. Buffers that several phases use become parts of an argument, too;
    what every chunk can compute for itself, sizes above all, is in no phase.
    Where a phase uses a value of another one that is in no memory, all are one.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

include "posenc/Codegen/GpuPasses.td"

#endif // POSENC_CODEGEN_PASSES_TD
