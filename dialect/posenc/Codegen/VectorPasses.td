//===- VectorPasses.td - vectors for CPUs ------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_VECTORPASSES_TD
#define POSENC_CODEGEN_VECTORPASSES_TD

include "mlir/Pass/PassBase.td"
include "posenc/Codegen/TuningOptions.td"

defvar Posenc_ToVectorOptions = !listconcat(
  [Option<"vectorBytes", "vector-bytes", "unsigned", /*default=*/"32",
          "Bytes of a hardware vector: 16, 32 or 64">],
  Posenc_TuningOptions);

class Posenc_ToVectorPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
  let options = Posenc_ToVectorOptions;
}

def PosencStreamStoresPass
    : InterfacePass<"posenc-stream-stores", "::mlir::FunctionOpInterface"> {
  let summary = "Use non-temporal stores for large results";
  let description = [{
    Input: loops of a kernel that write vectors to an output that they do not
    read. Output: a second version of the loop with non-temporal stores. It is
    executed for outputs of at least `stream-from` bytes whose rows are aligned to
    vectors and which overlap no input. Left alone: loops that read the output
    that they write.

    ```
    scf.for %i = ... {
      vector.store %v, %y[%i, %c0] : ..., vector<8xf32>
    }
    ```
    becomes
    ```
    scf.if %large_and_aligned {
      scf.for %i = ... {
        vector.store %v, %y[%i, %c0] {nontemporal = true} : ..., vector<8xf32>
      }
    } else {
      scf.for %i = ... {
        vector.store %v, %y[%i, %c0] : ..., vector<8xf32>
      }
    }
    ```
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencPrefetchRowsPass
    : InterfacePass<"posenc-prefetch-rows", "::mlir::FunctionOpInterface"> {
  let summary = "Prefetch rows while earlier rows are computed";
  let description = [{
    Input: loops over rows of an argument that read vectors of each row in
    several loops over columns. Output: the last of these loops over columns also
    prefetches a later row: the row `prefetch-distance` bytes ahead, or the next
    row if rows are longer than that. Left alone: rows that are read once, which
    the processor prefetches itself.

    ```
    scf.for %row = ... {
      scf.for %i = ... { vector.load %x[%row, %i] ... }
      scf.for %i = ... { vector.load %x[%row, %i] ... }
    }
    ```
    becomes
    ```
    scf.for %row = ... {
      scf.for %i = ... { vector.load %x[%row, %i] ... }
      scf.for %i = ... {
        memref.prefetch %x[%later, %i], read, locality<3>, data
        vector.load %x[%row, %i] ...
      }
    }
    ```
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencUnrollSumsPass
    : InterfacePass<"posenc-unroll-sums", "::mlir::FunctionOpInterface"> {
  let summary = "Unroll the loops of register tiles along the depth";
  let description = [{
    Input: innermost loops with step 1 that add to several vectors. Output: an
    iteration computes `product-unroll` steps, in the same order, so no bit of
    the sums changes; a second loop computes the rest. The fences of
    `posenc-order-tile-loads` become empty assembler statements that have the
    sums before them as operands, which keeps these in their place, too. Left
    alone: loops without fences, of few steps or with regions or writes, and sums
    that are no whole registers of f32 or f64 or depend on others of their step.

    ```
    %sums = scf.for %k = %c0 to %c256 step %c1 iter_args(%acc = ...) {
      %row = vector.load %panel[%k, %c0] ...
    }
    ```
    becomes
    ```
    %sums = scf.for %k = %c0 to %c256 step %c4 iter_args(%acc = ...) {
      %row = vector.load %panel[%k, %c0] ...
      %next = arith.addi %k, %c1
      %row1 = vector.load %panel[%next, %c0] ...
      ...
    }
    ```
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::ub::UBDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencPrefetchPanelsPass
    : InterfacePass<"posenc-prefetch-panels", "::mlir::FunctionOpInterface"> {
  let summary = "Prefetch the next block of a panel";
  let description = [{
    Input: the two innermost loops of a product with a packed matrix. The inner
    loop, over the reduction dimension, reads one row of the panel in each
    iteration and carries the accumulator; the outer loop, over register tiles,
    reads the same rows in all its iterations. Output: each iteration of the
    outer loop also prefetches some of the following rows; together they prefetch
    as many rows as the inner loop reads, at a constant rate. A single iteration
    of the outer loop reads the panel as a stream, which it prefetches at the
    prefetch distance. If the number of iterations is unknown, conditions on it
    select the lines of loops whose operations are kept in order by fences; other
    loops prefetch a line for each row. Left alone: rows that are read once.

    With `product-panel-cache`=2, panels that several iterations read are
    prefetched into the L2 cache.

    With `product-prefetch`, each register tile also prefetches the results below
    its own, which the next tile loads or stores.

    ```
    scf.for %tile = ... {
      scf.for %k = ... iter_args(%acc = ...) { vector.load %panel[%k, %c0] ... }
    }
    ```
    becomes
    ```
    scf.for %tile = ... {
      memref.prefetch %panel[%next, %c0], read, locality<3>, data
      scf.for %k = ... iter_args(%acc = ...) { vector.load %panel[%k, %c0] ... }
    }
    ```
  }];
  let options = Posenc_ToVectorOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencOrderTileLoadsPass
    : InterfacePass<"posenc-order-tile-loads", "::mlir::FunctionOpInterface"> {
  let summary = "Load elements of a register tile next to their use";
  let description = [{
    Input: the innermost loop of a product, which reads several elements of the
    left matrix as one vector and broadcasts each for a fused multiply-add.
    Output: each element is loaded just before its operation, and a fence that
    only the compiler sees keeps the next load behind that. It is meant for
    targets whose register tile takes nearly all vector registers, where LLVM
    would load all elements first and spill sums. Left alone: loops with up to
    three rows, and reads with masks or other uses.

    ```
    %a = vector.transfer_read %left[%i, %k], %pad : ..., vector<6x1xf32>
    %a0 = vector.extract %a[0, 0] : f32 from vector<6x1xf32>
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %c0 = math.fma %x0, %b, %acc0 : vector<16xf32>
    ```
    becomes
    ```
    %a0 = memref.load %left[%i, %k] : ...
    %x0 = vector.broadcast %a0 : f32 to vector<16xf32>
    %c0 = math.fma %x0, %b, %acc0 : vector<16xf32>
    llvm.fence syncscope("singlethread") acquire
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect"];
}

def PosencDecomposeRotationsPass
    : Posenc_ToVectorPass<"posenc-decompose-rotations"> {
  let summary = "Decompose rope and rotate on memrefs into loops of linalg tiles";
  let description = [{
    Input: `posenc.rope` and `posenc.rotate` on memrefs, usually tiles of a few
    positions. Output, for each position: code that stores the cos and sin of
    all pairs on the stack, and loops over all rows around a `linalg.generic` on
    views of one cache line of pairs. Its `ins` are both lanes of the pairs, cos
    and sin; its `outs` are both lanes. Only the views depend on the pairing:
    `half` reads the lanes of a pair from the two halves of the row,
    `interleaved` reads every second lane. For bf16, one operation has the even
    and the odd pairs of a `half` row as separate operands, because
    `posenc-vectorize-tiles` deinterleaves bf16 rows. The destination may be the
    input.

    The tuning options, and at run time the sizes and addresses of the tensors,
    determine prefetches, streaming stores (the attribute `posenc.streamed`) and the
    order of rows. Left alone: all other operations.

    ```
    posenc.rope half #posenc.frequencies<dim = 64> ins(%x : memref<8x64xf32>)
      positions(%p : memref<i64>) dims = [] outs(%x : memref<8x64xf32>)
    ```
    becomes
    ```
    ... store cos and sin of position %p to %cos and %sin : memref<1x32xf32> ...
    scf.for %row = %c0 to %c8 step %c1 {
      scf.for %i = %c0 to %c32 step %c16 {
        linalg.generic ins(%first, %second, %cos_view, %sin_view : memref<16xf32, ...>, ...)
          outs(%first, %second : ...) {
          ^bb0(%x: f32, %y: f32, %c: f32, %s: f32, ...):
            ... linalg.yield x * c - y * s, x * s + y * c
        }
      }
    }
    ```
  }];
}

def PosencVectorizeTilesPass
    : Posenc_ToVectorPass<"posenc-vectorize-tiles"> {
  let summary = "Vectorize small elementwise linalg operations on memrefs";
  let description = [{
    Input: elementwise linalg operations whose operands are one-dimensional
    `memref.subview`s, and whose results have at most 64 bytes each. Output:
    `vector.load`, arithmetic on hardware vectors, and `vector.store`; all
    elements are read before any is written. An access has the alignment of a
    `memref.assume_alignment` of the view. Two views of the even and the odd
    elements of a range are loaded and stored as one vector; with `zip`, this
    vector is deinterleaved only if different operations are applied to the two
    views. Stores of an operation with the attribute `posenc.streamed` are non-temporal.
    Left alone: all other operations.

    ```
    %s = memref.subview %x[%i] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: ?>>
    linalg.square ins(%s : ...) outs(%s : ...)
    ```
    becomes
    ```
    %0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %1 = arith.mulf %0, %0 : vector<8xf32>
    vector.store %1, %x[%i] : memref<64xf32>, vector<8xf32>
    ```
  }];
  let options = !listconcat(Posenc_ToVectorOptions, [
    Option<"zip", "zip", "bool", /*default=*/"true",
           "Avoid shuffles, for which AVX has few execution units">
  ]);
}

def PosencLowerTileProductsPass
    : Pass<"posenc-lower-tile-products", "::mlir::func::FuncOp"> {
  let summary = "Lower products on panels to the target's instructions";
  let description = [{
    Input: `posenc.tile_product` on tensors or memrefs. Output: the first of these
    units computes a product.

    - AMX (`amx-bf16`): bf16 pairs, 32 rows and columns, and a depth that is
      known to be a multiple of 16 words, on memrefs. The code is written out
      for up to 128 words at a time.
    - VDPBF16PS (`bf16-dots`): bf16 pairs, in vectors of 16 columns.
    - Fused multiply-add: floats, with a static number of rows and columns.
    - AMX (`amx-int8`): quads, likewise.
    - VPDPBUSD (`int8-dots`): quads, in vectors of 16 columns.
    - Otherwise, on every CPU: fused multiply-adds of the numbers of pairs, or
      products and sums of the integers of quads, in vectors if the sums are a
      vector, else as a `linalg.generic`.

    Left alone: products on tensors that AMX computes; a second run after
    bufferization lowers them.

    ```
    %r = posenc.tile_product floats ins(%a, %b : tensor<1x?xf32>, tensor<?x16xf32>)
      sums(%c : tensor<1x16xf32>)
    ```
    becomes
    ```
    %0 = vector.transfer_read %c[%c0, %c0] ... : tensor<1x16xf32>, vector<1x16xf32>
    %1 = scf.for %k = %c0 to %depth step %c1 iter_args(%sums = %0) {
      %2 = vector.transfer_read %a[%c0, %k] ... : tensor<1x?xf32>, vector<1x1xf32>
      %3 = vector.transfer_read %b[%k, %c0] ... : tensor<?x16xf32>, vector<16xf32>
      ... vector.extract, vector.broadcast, math.fma, vector.insert
    }
    %r = vector.transfer_write %1, %c[%c0, %c0] ... : vector<1x16xf32>, tensor<1x16xf32>
    ```
  }];
  let options = [
    Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
           "Use the bf16 dot product (VDPBF16PS)">,
    Option<"amxBF16", "amx-bf16", "bool", /*default=*/"false",
           "Use AMX-BF16">,
    Option<"int8Dots", "int8-dots", "bool", /*default=*/"false",
           "Use the dot product of bytes (AVX512-VNNI)">,
    Option<"amxInt8", "amx-int8", "bool", /*default=*/"false",
           "Use AMX-INT8">
  ];
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def PosencFormByteDotsPass
    : Pass<"posenc-form-byte-dots", "::mlir::func::FuncOp"> {
  let summary = "Compute sums of products of four bytes by VPDPBUSD";
  let description = [{
    Input: arithmetic on vectors of i32 that adds four products, of the bytes at the
    same place in two words, to a sum; the bytes of one word are signed and those of
    the other one unsigned, as products of activations and codes of weights are.
    Output: the dot product of AVX512-VNNI on vectors of 16 words, which wraps
    around as the sum does. Left alone: vectors whose last dimension is no multiple
    of 16, and sums in another order.

    ```
    %a0 = arith.shrsi (arith.shli %a, 24), 24 : vector<16xi32>
    %b0 = arith.andi %b, 255 : vector<16xi32>
    %1 = arith.addi %sum, (arith.muli %a0, %b0)
    ... likewise for the other three bytes
    ```
    becomes
    ```
    %4 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%sum, %b8, %a8)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::ub::UBDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencInterleaveTilesPass
    : Pass<"posenc-interleave-tiles", "::mlir::func::FuncOp"> {
  let summary = "Place vector operations among products of AMX tiles";
  let description = [{
    The tile unit and the vector units of a core work at the same time only if
    their instructions alternate: after 16 products, the reorder buffer holds no
    vector instruction that follows them. Input: a block with products of tiles
    (`amx.tile_mulf`) before or after operations on vectors. Output: the vector
    operations, in the same order, in equal shares after each product. A tile
    that a sum starts from is loaded right before its first product. A
    `amx.tile_store` waits until the next sum starts, as it would otherwise wait
    for its product in the way of later instructions.

    An operation is placed only after all earlier operations that it depends on.
    Accesses of memory depend on each other if one of them writes, unless they
    are to different `memref.alloca`s, to such memory and an argument of the
    function, to different results of one `memref.distinct_objects`, or if a
    constant index differs. The pass removes `memref.distinct_objects`.
    Operations with regions, and those with unknown effects, stay where they are.

    ```
    %sum = amx.tile_zero : !amx.tile<16x16xf32>
    %0 = amx.tile_mulf %a0, %b0, %sum : ...
    %1 = amx.tile_mulf %a1, %b1, %0 : ...
    amx.tile_store %c[%c0, %c0], %1 : ...
    %x = vector.load %p[%c0] : memref<32xf32>, vector<16xf32>
    %y = arith.addf %x, %x : vector<16xf32>
    %z = arith.mulf %y, %y : vector<16xf32>
    vector.store %z, %p[%c0] : memref<32xf32>, vector<16xf32>
    ```
    becomes
    ```
    %sum = amx.tile_zero : !amx.tile<16x16xf32>
    %0 = amx.tile_mulf %a0, %b0, %sum : ...
    %x = vector.load %p[%c0] : memref<32xf32>, vector<16xf32>
    %y = arith.addf %x, %x : vector<16xf32>
    %1 = amx.tile_mulf %a1, %b1, %0 : ...
    %z = arith.mulf %y, %y : vector<16xf32>
    vector.store %z, %p[%c0] : memref<32xf32>, vector<16xf32>
    amx.tile_store %c[%c0, %c0], %1 : ...
    ```
  }];
}

def PosencStreamTileLoadsPass : Pass<"posenc-stream-tile-loads"> {
  let summary = "Load packed AMX tiles past the L1 cache";
  let description = [{
    Input: the LLVM dialect. Output: a tile whose rows are contiguous, alone or with
    those of a second tile beside it, and which is only the right operand of
    products (`llvm.x86.tdpbf16ps.internal`), is loaded by TILELOADDT1. Such tiles are packed keys, values or matrices, which are read
    from the L2 cache, once for all rows of the left operand. Left alone: all other
    operations.

    ```
    %b = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%16, %64, %p, %stride64) : ...
    ```
    becomes
    ```
    %b = llvm.call_intrinsic "llvm.x86.tileloaddt164.internal"(%16, %64, %p, %stride64) : ...
    ```
  }];
}

def ConvertPosencTablesToVectorPass
    : Posenc_ToVectorPass<"convert-posenc-tables-to-vector"> {
  let summary = "Convert sincos and sinusoidal on memrefs to vectors";
  let description = [{
    Input: `posenc.sincos` and `posenc.sinusoidal` on memrefs. Output: a loop over
    positions. The exact phase, and from it the sin and cos of all pairs, are
    computed once for four runs of 32 consecutive positions (64 for bf16); the
    elements are computed by angle addition. Near a zero of sin or cos, where
    angle addition has a large relative error, an element is recomputed from its
    exact phase. Tables of f64, and tables with more than 4096 pairs, use the exact
    phase of each position. Results have the same bits for all vector widths. Left
    alone: all other operations.

    ```
    posenc.sincos #f positions(%p : memref<?xi64>) outs(%cos, %sin : memref<?x32xf32>, ...)
    ```
    becomes
    ```
    scf.for %i = %c0 to %n step %c1 {
      %position = memref.load %p[%i] : memref<?xi64>
      ... arithmetic on vector<16xi32>, vector<8xf64>, vector<16xf32> ...
      vector.store %c, %cos[%i, %pair] : memref<?x32xf32>, vector<16xf32>
      vector.store %s, %sin[%i, %pair] : memref<?x32xf32>, vector<16xf32>
    }
    ```
  }];
}

def ConvertPosencAttentionToVectorPass
    : Posenc_ToVectorPass<"convert-posenc-attention-to-vector"> {
  let summary = "Convert attention on memrefs to vectors, as in FlashAttention";
  let description = [{
    Input: `posenc.attention` on memrefs. Output: two kernels, prefill and decode,
    of which one may be left out. Both use an online softmax with a running max, a
    running sum and an accumulator.

    The prefill kernel is an `scf.forall` over the batch, query heads and tiles of
    queries. A task copies tiles of keys and values as rows of f32 to the stack,
    normed and rotated if the operation requires it, and never reads beyond a
    tensor. Vector lanes run along queries. Tiles of keys that are masked for all
    queries of a register tile are skipped, and masks are evaluated only in tiles
    that are visible to some, but not all queries.

    The decode kernel handles up to 32 queries per sequence, or 16 for bf16. It is
    omitted if each query token is also a key, as in prefill. The kernel is
    selected at run time if the number of queries is dynamic, for a ragged batch
    separately for each sequence. The decode kernel reads keys and values in place
    from the KV cache, once for all queries and all query heads of a key head. If
    there are few heads, it divides the keys into KV splits (Flash-Decoding). The
    number of splits depends on the number of keys only, and splits are merged in
    order, so results do not depend on the number of threads. Ragged batches are
    not split.

    With `bf16-dots`, for vectors of 64 bytes, bf16 attention uses bf16 dot
    products (`x86vector.avx512.dot`): queries, rotated or normed keys and weights
    are rounded to bf16, and accumulators are f32. Attention that returns
    log-sum-exp, or has an odd head dimension, computes in f32 instead. With
    `amx-bf16` too, tiles of 16 x 16 results (`amx.tile_mulf`) compute these dot
    products, if the values have a multiple of 16 channels. Without a mask operand,
    and without regions that load elements, the code of a step of 32 keys then has
    the products of the next step beside its own softmax, which
    `posenc-interleave-tiles` places among them; otherwise a remark names the reason.

    Left alone, with a remark that gives the reason: f64, heads wider than 576,
    a dynamic number of heads, and regions with functions that have no
    expansion. These are lowered by way of linalg (`posenc-decompose-attention`).

    ```
    posenc.attention causal ins(%q, %k, %v : memref<2x?x8x64xf32, ...>, ...) outs(%o : ...)
    ```
    becomes
    ```
    scf.forall (%batch, %head, %tile) in (2, 8, %tiles) {
      scf.for %key_tile = ... {
        ... pack keys and values ...
        scf.for %queries = ... {
          ... scores, running max and sum, accumulator: vector<16xf32> ...
        }
      }
      ... divide by the running sums, store rows of %o ...
    }
    ```
  }];
  // The LLVM dialect is used for loop annotations.
  let dependentDialects = [
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
  let options = !listconcat(Posenc_ToVectorOptions, [
    Option<"bf16Dots", "bf16-dots", "bool", /*default=*/"false",
           "Use the bf16 dot product (VDPBF16PS) for bf16 attention">,
    Option<"amxBF16", "amx-bf16", "bool", /*default=*/"false",
           "Compute these dot products with AMX-BF16">
  ]);
}

#endif // POSENC_CODEGEN_VECTORPASSES_TD
