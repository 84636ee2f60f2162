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

/// Dialects of the loops and tiles that passes on linalg create.
defvar kTilingDialects = [
  "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
  "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
  "::mlir::tensor::TensorDialect"
];

def PosencTilePositionsPass
    : InterfacePass<"posenc-tile-positions", "::mlir::FunctionOpInterface"> {
  let summary = "Tile operations on tensors to one position or a few each";
  let description = [{
    Input: sincos, sinusoidal, rotate, rope and kv_append on tensors. Output: an
    `scf.forall` over the grid of positions of each. An iteration has one
    position, or a block of positions for a rope whose rows are small, and
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
  let summary = "Split pack, unpack, pad and concat on tensors into copies";
  let description = [{
    Input: `linalg.pack`, `linalg.unpack`, `tensor.pad` and `tensor.concat` on
    tensors. Output, by upstream's patterns: a pack is a pad, a reshape and a
    transpose; an unpack is the reverse; a pad is a fill and an insertion; a
    concat is insertions. Operations without users are erased. Left alone: all
    other operations.

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
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencWidenSumsPass
    : InterfacePass<"posenc-widen-sums", "::mlir::FunctionOpInterface"> {
  let summary = "Sum f16 and bf16 in f32";
  let description = [{
    Input: linalg reductions that add to a result of f16 or bf16. Output: the
    same reductions with a result of f32, followed by an operation that rounds
    it once. A product that is added is formed in f32, too. Left alone: matrix
    products, whose tiles accumulate in f32 anyway.

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
  let summary = "Fuse chains of elementwise operations of linalg";
  let description = [{
    Input: elementwise linalg operations with one user that has as many loops.
    Output: one `linalg.generic` for producer and user; named operations are
    generalized first. Left alone: matrix products, and producers with several
    users.

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
  let summary = "Let elementwise operations overwrite an operand they read last";
  let description = [{
    Input: an elementwise `linalg.generic` that is the last reader of an input
    with the type of its result. Output: that input is its destination, and the
    operation that computes the input writes to the destination that the generic
    had, so that bufferization allocates no buffer for the input. Left alone: an
    input of at most 16 KiB with other readers. It stays in the cache, and a
    destination that is written once can be stored past the caches.

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
  let summary = "Fuse operations that exchange rows into one loop over rows";
  let description = [{
    Input: elementwise operations, row reductions and tables of positions that
    use each other's results row by row. Output: one `scf.forall` over rows; the
    intermediate results in it have one row. A producer with users behind the
    loop stays a result of the loop. Left alone: operations that nothing can be
    fused into.

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
}

defvar Posenc_ContractionOptions = [
  Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
         "Bytes of the widest vector of the target">,
  Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
         "Compute products of bf16 by the bf16 dot product (VDPBF16PS)">
];

def PosencTileInnerProductsPass
    : InterfacePass<"posenc-tile-inner-products",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile matrix products on cached operands to register tiles";
  let description = [{
    Input: contractions of linalg that stand in a loop and have two matrices of
    static size that fit into the caches, such as the two products of
    attention. Output: loops over register tiles of rows and columns. A matrix
    whose element type differs from that of the accumulator, and a second matrix
    whose columns are not contiguous, are copied once, in front of the innermost
    loop that changes them. An elementwise operation that is the only user of
    the product is computed tile by tile, too. Left alone: contractions outside
    of loops, which `posenc-tile-contractions` tiles.

    With `bf16-dots`, for vectors of 64 bytes, matrices of bf16 are copied as
    words of two elements, as `posenc-tile-contractions` does.

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
          scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = ...) {
            linalg.generic ins(%ak, %bk : tensor<4x1xf32>, tensor<1x16xf32>)
              outs(%acc : tensor<4x16xf32>) { arith.mulf, arith.addf }
          }
        }
      }
    }
    ```
  }];
  let options = Posenc_ContractionOptions;
  let dependentDialects = kTilingDialects # ["::mlir::vector::VectorDialect"];
}

def PosencTileContractionsPass
    : InterfacePass<"posenc-tile-contractions",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile matrix products to packed panels and register tiles";
  let description = [{
    Input: contractions of linalg with one row, one column and one reduction
    dimension. Output, as in BLIS: an `scf.forall` over cache blocks of rows and
    panels of columns. In each, a part of the panel is packed into scratch
    memory, and each register tile of rows is a loop over the reduction
    dimension around a `linalg.generic` that updates the accumulator. Every
    element is summed in the order of the reduction, whatever the tiles are; f16
    and bf16 are extended to the type of the accumulator first. Left alone:
    contractions with batch dimensions or several of one kind.

    With `bf16-dots`, for vectors of 64 bytes, matrices of bf16 are packed as
    words of two elements, and a step of the loop is a `vector.contract` that
    `posenc-lower-dots` turns into bf16 dot products. The two elements of a word
    are 32 apart in the order of the sum: element j of each 64 and element j + 32.

    ```
    %c = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x96xf32>) ...
    ```
    becomes
    ```
    %c = scf.forall (%panel) in (6) shared_outs(...) {
      %packed = tensor.insert_slice ... into ... : tensor<64x16xf32> into tensor<128x16xf32>
      scf.for %row = %c0 to %c64 step %c4 ... {
        scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = ...) {
          linalg.generic ins(%ak, %bk : tensor<4x1xf32>, tensor<1x16xf32>)
            outs(%acc : tensor<4x16xf32>) { arith.mulf, arith.addf }
        }
      }
    }
    ```
  }];
  let options = Posenc_ContractionOptions;
  let dependentDialects = kTilingDialects # ["::mlir::vector::VectorDialect"];
}

def PosencTileElementwisePass
    : InterfacePass<"posenc-tile-elementwise",
                    "::mlir::FunctionOpInterface"> {
  let summary = "Tile elementwise operations of linalg to vectors";
  let description = [{
    Input: linalg operations whose loops are all parallel. Output: loops over
    rows and, in these, over one vector of elements at a time; the remainder of
    a row is an operation of its own. Loops of operations in the function's own
    block are `scf.forall`. Left alone: reductions and contractions.

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
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PosencTileReductionsPass
    : InterfacePass<"posenc-tile-reductions", "::mlir::FunctionOpInterface"> {
  let summary = "Tile row reductions to partial results in vectors";
  let description = [{
    Input: linalg reductions along the rows of an input. Output: for each row, a
    loop that updates a vector of partial results, and a reduction of that
    vector. Rows of at least 256 f32 or 128 f64, and rows of dynamic size, have
    64 or 32 partial results; shorter rows have 16. The number does not depend on
    the target, since it decides how sums round. Left alone: reductions of other
    dimensions than the last, and contractions.

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
  let summary = "Turn linalg tiles of static size into vectors";
  let description = [{
    Input: linalg operations on tensors of small static size within loops.
    Output: vectors, by upstream's vectorizer; accumulators become vectors that
    loops carry; contractions of vectors become outer products. Left alone:
    operations of dynamic size, operations outside of loops, and contractions of
    bf16 words, which `posenc-lower-dots` lowers.

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

def PosencLowerDotsPass
    : InterfacePass<"posenc-lower-dots", "::mlir::FunctionOpInterface"> {
  let summary = "Lower contractions of words of bf16 to bf16 dot products";
  let description = [{
    Input: `vector.contract` of words of two bf16 (rows x 2 and columns x 2)
    added to f32 (rows x columns), for a multiple of 16 columns. Output: one
    `x86vector.avx512.dot` for each row and 16 columns. The instruction rounds
    as two fused multiply-adds would, but reads subnormal numbers as zero. Left
    alone: all other operations.

    ```
    %r = vector.contract ... %a, %b, %c : vector<1x2xbf16>, vector<16x2xbf16> into vector<1x16xf32>
    ```
    becomes
    ```
    %x = vector.bitcast ... : vector<16xi32> to vector<32xbf16>
    %y = vector.bitcast ... : vector<16xi32> to vector<32xbf16>
    %0 = x86vector.avx512.dot %acc, %x, %y : vector<32xbf16> -> vector<16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::vector::VectorDialect",
                           "::mlir::x86vector::X86VectorDialect"];
}

#endif // POSENC_CODEGEN_LINALGPASSES_TD
