//===- LinalgPasses.td - tiling and vectorization of linalg *- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_LINALGPASSES_TD
#define POSENC_CODEGEN_LINALGPASSES_TD

include "mlir/Pass/PassBase.td"
include "posenc/Codegen/TuningOptions.td"

/// Dialects of the loops and tiles that the tiling passes create.
defvar kTilingDialects = [
  "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
  "::mlir::linalg::LinalgDialect", "::mlir::posenc::PosencDialect",
  "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
];

def PosencTilePositionsPass
    : InterfacePass<"posenc-tile-positions", "::mlir::FunctionOpInterface"> {
  let summary = "Tile operations on tensors to one or a few positions";
  let description = [{
    Input: sincos, sinusoidal, rotate, rope and kv_append on tensors. Output: an
    `scf.forall` over the position loops of each operation. An iteration has one
    position, or a block of positions for a rope with few or short rows, and
    computes the elementwise producers of its operands itself. Left alone:
    operations with scalar positions, and all other operations.

    ```
    %r = posenc.rope half #f ins(%x : tensor<?x8x64xf32>)
      positions(%p : tensor<?xi64>) dims = [0] outs(%x : tensor<?x8x64xf32>)
    ```
    becomes
    ```
    %r = scf.forall (%i) = (0) to (%n) step (8) shared_outs(%o = %x) {
      %size = affine.min affine_map<(i)[n] -> (n - i, 8)>(%i)[%n]
      %t = tensor.extract_slice %x[%i, 0, 0] [%size, 8, 64] [1, 1, 1]
      %q = tensor.extract_slice %p[%i] [%size] [1]
      %u = posenc.rope half #f ins(%t) positions(%q) dims = [0] outs(...)
      scf.forall.in_parallel { tensor.parallel_insert_slice %u into %o[%i, 0, 0] ... }
    }
    ```
  }];
  let options = Posenc_TuningOptions;
  let dependentDialects = kTilingDialects;
}

def PosencDecomposeMovesPass
    : InterfacePass<"posenc-decompose-moves", "::mlir::FunctionOpInterface"> {
  let summary = "Decompose pack, unpack, pad and concat on tensors into copies";
  let description = [{
    Input: `linalg.pack`, `linalg.unpack`, `tensor.pad` and `tensor.concat` on
    tensors. Output, by upstream's patterns: a pack becomes a pad, a reshape and a
    transpose; an unpack becomes the reverse; a pad becomes a fill and an
    insertion; a concat becomes insertions. A concat of more than 8 tensors of static
    sizes becomes writes to slices of a buffer, which is an output of the function if
    the result is written to one: the analysis of bufferization compares all insertions
    into one tensor with each other. Operations without users are erased. Errors:
    dynamic tile sizes. Left alone: all other operations.

    ```
    %r = tensor.concat dim(0) %x, %y : (tensor<7x3xf32>, tensor<5x3xf32>) -> tensor<12x3xf32>
    ```
    becomes
    ```
    %e = tensor.empty() : tensor<12x3xf32>
    %0 = tensor.insert_slice %x into %e[0, 0] [7, 3] [1, 1]
    %r = tensor.insert_slice %y into %0[7, 0] [5, 3] [1, 1]
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencWidenSumsPass
    : InterfacePass<"posenc-widen-sums", "::mlir::FunctionOpInterface"> {
  let summary = "Accumulate f16 and bf16 sums in f32";
  let description = [{
    Input: linalg reductions that add to a result of f16 or bf16. Output: the
    same reductions with an f32 result, followed by an operation that rounds the
    result once. A product that is added is also computed in f32. Left alone:
    matrix products, whose tiles accumulate in f32 anyway.

    ```
    %r = linalg.reduce { arith.addf } ins(%x : tensor<8x64xbf16>)
      outs(%o : tensor<8xbf16>) dimensions = [1]
    ```
    becomes
    ```
    %w = linalg.generic ins(%o : tensor<8xbf16>) outs(...) { arith.extf }
    %s = linalg.generic ins(%x : tensor<8x64xbf16>) outs(%w : tensor<8xf32>) {
      arith.extf, arith.addf : f32
    }
    %r = linalg.generic ins(%s : tensor<8xf32>) outs(...) { arith.truncf }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencFuseElementwisePass
    : InterfacePass<"posenc-fuse-elementwise", "::mlir::FunctionOpInterface"> {
  let summary = "Fuse elementwise linalg operations";
  let description = [{
    Input: elementwise linalg operations with a single user that has the same
    number of loops. Output: one `linalg.generic` for producer and user; named
    operations are generalized first. Left alone: matrix products, and producers
    with several users.

    ```
    %s = linalg.square ins(%x : tensor<8x64xf32>) outs(%o : tensor<8x64xf32>)
    %r = linalg.add ins(%s, %x : ...) outs(%o : ...)
    ```
    becomes
    ```
    %r = linalg.generic ins(%x, %x : ...) outs(%o : ...) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %0 = arith.mulf %a, %a : f32
        %1 = arith.addf %0, %b : f32
        linalg.yield %1 : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencReuseOperandsPass
    : InterfacePass<"posenc-reuse-operands", "::mlir::FunctionOpInterface"> {
  let summary = "Make elementwise operations overwrite their last-used operand";
  let description = [{
    Input: an elementwise `linalg.generic` that is the last reader of an input
    with the type of its result. Output: that input is its destination, and the
    producer of the input writes to the original destination of the generic, so
    bufferization allocates no buffer for the input. Left alone: an input of at
    most 16 KiB with other readers; it stays in the L1 cache, and the output,
    which is written once, can use streaming stores.

    ```
    %s = linalg.softmax ... outs(%e : tensor<8x1024xf32>)
    %r = linalg.generic ins(%s, %y : ...) outs(%o : tensor<8x1024xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32): ... arith.addf %a, %b
    }
    ```
    becomes
    ```
    %s = linalg.softmax ... outs(%o : tensor<8x1024xf32>)
    %r = linalg.generic ins(%y : ...) outs(%s : tensor<8x1024xf32>) {
      ^bb0(%b: f32, %a: f32): ... arith.addf %a, %b
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencFuseRowsPass
    : InterfacePass<"posenc-fuse-rows", "::mlir::FunctionOpInterface"> {
  let summary = "Fuse operations row by row into one loop";
  let description = [{
    Input: elementwise operations, row reductions, ropes and tables of positions
    that read each other's results row by row. Output: one `scf.forall` over rows
    whose intermediate results have one row. A producer with users after the loop
    remains a result of the loop. Left alone: operations without a producer that
    can be fused.

    ```
    %s = linalg.reduce { arith.addf } ins(%x : tensor<8x64xf32>) ... dimensions = [1]
    %y = linalg.generic ins(%x, %s : tensor<8x64xf32>, tensor<8xf32>) ... { arith.divf }
    ```
    becomes
    ```
    %y = scf.forall (%i) in (8) shared_outs(%o = ...) {
      %row = tensor.extract_slice %x[%i, 0] [1, 64] [1, 1]
      %s = linalg.reduce { arith.addf } ins(%row : tensor<1x64xf32>) ... dimensions = [1]
      %t = linalg.generic ins(%row, %s : ...) ... { arith.divf }
      scf.forall.in_parallel { tensor.parallel_insert_slice %t into %o[%i, 0] ... }
    }
    ```
  }];
  let dependentDialects = kTilingDialects;
  let options = [
    Option<"onlyReductions", "only-reductions", "bool", /*default=*/"false",
           "Fuse only where a row is reduced, and no tables of positions">];
}

defvar Posenc_ContractionOptions = [
  Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
         "Bytes of the widest vector of the target">,
  Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
         "Use the bf16 dot product (VDPBF16PS) for products of bf16 matrices">
];

def PosencTileBlockSumsPass
    : InterfacePass<"posenc-tile-block-sums", "::mlir::FunctionOpInterface"> {
  let summary = "Tile sums over blocks of scaled sums to register tiles";
  let description = [{
    Input: a sum (a `linalg.generic` with one reduction loop) over blocks, of which
    an operand is a sum over the elements of a block that nobody else reads, such as
    the product with a matrix of codes with a scale for each block. The columns are
    contiguous in the results and the operands. Output: an `scf.forall` over tiles of
    columns, and in it loops over tiles of rows, blocks and elements, which carry a
    vector of columns for each row of a tile: the sums of a block, which are scaled
    and added to those of the rows. Left alone: sums of other types than f32 and i32,
    those whose columns are no multiple of a vector, and bodies with `linalg.index`.

    Values of the body that depend on columns and on no row, such as codes that are
    unpacked from a word, are computed for each tile of rows. From `code-buffer-rows`
    rows on, those of several blocks are written to a buffer first, which all tiles of
    rows read; the order of the sums is the same. If all steps of a body add the
    product of an element of a row and an unpacked value, and the rows are slices of
    every n-th element of a tensor, the steps are iterations of a loop then.

    ```
    %p = linalg.generic ins(%a, %codes : tensor<?x64x32xf32>, tensor<8x64x32x64xi8>)
      outs(%f : tensor<?x8x64x64xf32>) { ... math.fma }
    %c = linalg.generic ins(%p, %scales : tensor<?x8x64x64xf32>, tensor<8x64x64xf32>)
      outs(%g : tensor<?x8x64xf32>) { math.fma }
    ```
    becomes
    ```
    %c = scf.forall (%panel) in (8) shared_outs(%out = ...) {
      scf.for %row = %c0 to %whole step %c6 ... {
        %sums:6 = scf.for %block = %c0 to %c64 step %c1 iter_args(...) -> (vector<64xf32>, ...) {
          %p:6 = scf.for %k = %c0 to %c32 step %c1 iter_args(...) -> (vector<64xf32>, ...) {
            ... vector.transfer_read, tensor.extract, vector.broadcast, math.fma ...
          }
          ... vector.transfer_read of the scales, math.fma ...
        }
        ... vector.transfer_write ...
      }
      ... the remaining rows, in smaller tiles ...
      scf.forall.in_parallel { ... }
    }
    ```
  }];
  let dependentDialects =
      !listconcat(kTilingDialects, ["::mlir::vector::VectorDialect"]);
  let options = !listconcat([
    Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
           "Bytes of the widest vector of the target">], Posenc_TuningOptions);
}

def PosencTileInnerProductsPass
    : InterfacePass<"posenc-tile-inner-products",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile matrix products on cached operands to register tiles";
  let description = [{
    Input: linalg contractions in a loop whose two matrices have a bounded size
    and fit in cache, such as the two products of attention. Output: loops over
    register tiles of rows and columns. A matrix whose element type differs from
    the accumulator's, or a right-hand matrix whose columns are not contiguous, is
    copied once, before all loops in which it is invariant. An elementwise
    operation that is the only user of the product is fused into the register
    tiles. Left alone: contractions outside of loops, which
    `posenc-tile-contractions` tiles.

    With `bf16-dots`, for vectors of 64 bytes, bf16 matrices are copied as 32-bit
    words of two elements, as in `posenc-tile-contractions`.

    ```
    scf.for ... {
      %c = linalg.matmul ins(%a, %b : tensor<16x64xf32>, tensor<64x32xf32>) ...
    }
    ```
    becomes
    ```
    scf.for ... {
      %c = scf.for %row = %c0 to %c16 step %c4 ... {
        scf.for %column = %c0 to %c32 step %c16 ... {
          posenc.tile_product floats ins(%ar, %bc : tensor<4x64xf32>, tensor<64x16xf32>)
            sums(%cr : tensor<4x16xf32>)
        }
      }
    }
    ```
  }];
  let options = Posenc_ContractionOptions;
  let dependentDialects = kTilingDialects;
}

def PosencTileContractionsPass
    : InterfacePass<"posenc-tile-contractions",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile matrix products to packed panels and register tiles";
  let description = [{
    Input: linalg contractions of floats with row, column and reduction
    dimensions. Output, as in BLIS: an `scf.forall` over cache blocks of rows and
    columns. In each, a block of the right-hand matrix is packed into panels, and
    each register tile of rows is a `posenc.tile_product` (the micro-kernel). Every
    element is summed in the order of the reduction for all tile sizes: in f32, also
    for f16 and bf16, as partial sums of 256 products that are then added to the
    result, and in f64 as one sum. Batch dimensions, and further row and column
    dimensions, become loops of the `scf.forall`; further reduction dimensions
    become loops inside it. Left alone: contractions without a row or column
    dimension, such as matrix-vector products, integer contractions, and
    contractions that are tiles already.

    With `bf16-dots`, for vectors of 64 bytes, bf16 matrices are packed as 32-bit
    words of two elements, for bf16 dot products. The elements of a word are 32
    apart in the reduction dimension: element j of each block of 64, and element
    j + 32.

    With `amx-bf16` too, register tiles have 32 rows and 32 columns, and blocks of
    the reduction at most 256 elements, for AMX; rows of words end with zeros up to
    a multiple of 16.

    A right-hand matrix that was packed before, or a constant, is read as panels. The
    rows are then divided into about equal blocks of at most `product-panel-rows`;
    if their number is unknown, so is the step of the `scf.forall`.

    With `product-peel`, the first block of the reduction is a loop of its own,
    whose register tiles start from the value of the `linalg.fill` that
    initializes the result. With `product-copied-rows`, that many rows of the
    left-hand matrix at a time are copied to scratch whose rows are in different
    cache sets.

    ```
    %c = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x96xf32>) ...
    ```
    becomes
    ```
    %c = scf.forall (%panel) in (6) shared_outs(...) {
      %packed = tensor.insert_slice ... into ... : tensor<64x16xf32> into tensor<128x16xf32>
      scf.for %row = %c0 to %c64 step %c4 ... {
        posenc.tile_product floats ins(%ar, %p : tensor<4x64xf32>, tensor<64x16xf32>)
          sums(%cr : tensor<4x16xf32>)
      }
    }
    ```
  }];
  let options = !listconcat(Posenc_ContractionOptions, [
    Option<"amxBF16", "amx-bf16", "bool", "false",
           "Use AMX-BF16 for these dot products">
  ], Posenc_TuningOptions);
  let dependentDialects = kTilingDialects;
}

def PosencTileElementwisePass
    : InterfacePass<"posenc-tile-elementwise",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile elementwise operations and column reductions to vectors";
  let description = [{
    Input: linalg operations whose loops are all parallel, and column reductions,
    which combine rows element by element. Output: a loop over rows, which contains
    a loop over tiles of one vector of elements; the remainder of a row is a
    separate operation. A column reduction becomes loops over blocks of columns,
    over rows and over the vectors of a block. The outermost loop is an
    `scf.forall` if the operation is directly in the function's block. A body that
    reads a row of a table by `tensor.extract` along the last dimension gets the
    row as a sliced input instead. Left alone: row reductions and contractions.

    ```
    %r = linalg.square ins(%x : tensor<8x60xf32>) outs(%o : tensor<8x60xf32>)
    ```
    becomes
    ```
    %r = scf.forall (%row) in (8) shared_outs(...) {
      %0 = scf.for %i = %c0 to %c56 step %c8 ... {
        linalg.square ins(%t : tensor<1x8xf32>) ...
      }
      %1 = scf.for %i = %c56 to %c60 step %c8 ... {
        linalg.square ins(%t : tensor<1x?xf32>) ...
      }
    }
    ```
  }];
  let options = [
    Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
           "Bytes of the widest vector of the target">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::posenc::PosencDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencTileReductionsPass
    : InterfacePass<"posenc-tile-reductions", "::mlir::FunctionOpInterface"> {
  let summary = "Tile row reductions to vectors of partial results";
  let description = [{
    Input: linalg reductions along the last dimension of an input, with results
    of f32 or f64; its other dimensions may be indexed by sums of parallel loops.
    Output: for each row, a loop that updates a vector of partial
    results, and a reduction of that vector. Rows of at least 256 f32 or 128 f64,
    and rows of dynamic size, have 64 (f32) or 32 (f64) partial results; shorter
    rows have 16. The number does not depend on the target, since it determines
    the rounding. Left alone: reductions along other dimensions, rows of fewer
    than 32 elements, and contractions.

    ```
    %r = linalg.reduce { arith.addf } ins(%x : tensor<8x512xf32>) ... dimensions = [1]
    ```
    becomes
    ```
    %r = scf.forall (%row) in (8) shared_outs(...) {
      %partial = scf.for %i = %c0 to %c512 step %c64 iter_args(...) {
        linalg.generic ins(%t : tensor<1x64xf32>) outs(... : tensor<1x64xf32>) { arith.addf }
      }
      linalg.reduce ins(%partial : tensor<1x64xf32>) ... dimensions = [1]
    }
    ```
  }];
  let dependentDialects = kTilingDialects;
}

def PosencVectorizeLinalgPass
    : InterfacePass<"posenc-vectorize-linalg",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Vectorize linalg tiles of static size";
  let description = [{
    Input: linalg operations on tensors with at most 2048 elements of static size
    inside loops. Output: vector operations, by upstream's vectorizer;
    accumulators become vectors that loops carry; contractions of vectors become
    outer products. Left alone: operations of dynamic size, and operations outside
    of loops.

    ```
    %r = linalg.square ins(%t : tensor<1x8xf32>) outs(%u : tensor<1x8xf32>)
    ```
    becomes
    ```
    %0 = vector.transfer_read %x[%i, %c0] ... : tensor<8x64xf32>, vector<1x8xf32>
    %1 = arith.mulf %0, %0 : vector<1x8xf32>
    %2 = vector.transfer_write %1, %o[%i, %c0] ... : vector<1x8xf32>, tensor<8x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::ub::UBDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // POSENC_CODEGEN_LINALGPASSES_TD
