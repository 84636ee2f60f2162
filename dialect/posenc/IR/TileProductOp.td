//===- TileProductOp.td - products on panels ---------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_TILEPRODUCTOP_TD
#define POSENC_IR_TILEPRODUCTOP_TD

include "posenc/IR/OpBase.td"
include "posenc/IR/PosencEnums.td"

def Posenc_ProductElements : Posenc_Enum<"ProductElements",
    "what an element of a matrix of a tile product holds", [
  I32EnumCase<"Floats", 0, "floats">,
  I32EnumCase<"BF16Pairs", 1, "bf16_pairs">,
  I32EnumCase<"F16Pairs", 2, "f16_pairs">,
  I32EnumCase<"U8S8Quads", 3, "u8s8_quads">,
  I32EnumCase<"S8U8Quads", 4, "s8u8_quads">
]>;
def Posenc_ProductElementsAttr
    : EnumAttr<PosencDialect, Posenc_ProductElements, "product_elements">;

def Posenc_Panel : Posenc_Shaped<[F64, F32, F16, BF16, I32]>;
def Posenc_TileSums : AnyTypeOf<[
  RankedTensorOf<[F64, F32, I32]>, MemRefOf<[F64, F32, I32]>,
  VectorOfRankAndType<[3], [F64, F32, I32]>]>;

def Posenc_TileProductOp : Op<PosencDialect, "tile_product", [
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
      "getResultTilePosition", "getIterationDomainTileFromResultTile",
      "generateResultTileValue"]>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                              ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "adds a product of two panels to a tile of sums";
  let description = [{
    Adds the product of the panels `a` (rows x depth) and `b` (depth x columns)
    to `sums` (rows x columns), as the micro-kernel of a matrix product does:

    `sums[m, n] += sum_k a[m, k] * b[k, n]`

    With `transposed`, `a` is stored as depth x rows. `elements` says what an
    element of both panels holds:

    - `floats`: one number. Narrower ones than the sums are extended exactly.
    - `bf16_pairs`, `f16_pairs`: a 32-bit word with two numbers along the depth,
      the first one in the lower half. A word adds both products.
    - `u8s8_quads`, `s8u8_quads`: a 32-bit word with four integers of 8 bits along
      the depth, the first one in the lowest bits: unsigned (`u8`) or signed (`s8`)
      in `a`, then in `b`. A word adds all four products, and sums wrap around.

    Each sum is computed in the order of `k`. For floats, a step is one fused
    multiply-add. For pairs, the unit that multiplies determines the order of the
    two products of a word and the roundings between them; some units treat
    subnormal numbers as zeros, and AMX adds the products of 16 words before it
    adds their sum. Without such a unit, a word adds the product of its second
    numbers first, then that of its first ones, by fused multiply-adds. Sums of
    integers are the same for all units.

    With `skips_zeros`, a product whose factor from `b` is zero is left out, so
    that an infinity or NaN in `a` has no effect there. For integers, there is no
    difference.

    Sums in a tensor or memref are a destination. Sums in registers are a vector
    (rows x vectors x lanes), whose last two dimensions are the columns; the
    result is a vector of that type. Rows and columns are tiled as parallel
    loops. `posenc-lower-tile-products` selects the unit.

    ```mlir
    func.func @add(%a: tensor<8x?xi32>, %b: tensor<?x32xi32>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
      %r = posenc.tile_product bf16_pairs ins(%a, %b : tensor<8x?xi32>, tensor<?x32xi32>) sums(%c : tensor<8x32xf32>)
      return %r : tensor<8x32xf32>
    }
    func.func @registers(%a: memref<?x4xf32>, %b: memref<?x32xf32>, %c: vector<4x2x16xf32>) -> vector<4x2x16xf32> {
      %r = posenc.tile_product floats transposed skips_zeros ins(%a, %b : memref<?x4xf32>, memref<?x32xf32>) sums(%c : vector<4x2x16xf32>)
      return %r : vector<4x2x16xf32>
    }
    ```

    Constraints:
    - (tile_product_c1) panels, and sums that are no vector, have rank 2.
    - (tile_product_c2) `floats` are not wider than the sums; pairs are words of
      i32 or f32, and their sums are f32; quads are words of i32, and so are their
      sums.
    - (tile_product_c3) static sizes agree.
    - (tile_product_c4) operands are all tensors or all memrefs; with sums in a
      vector, both panels are memrefs. There is a result, of the type of the sums,
      unless those are a memref.
  }];
  let arguments = (ins
    Posenc_Panel:$a,
    Posenc_Panel:$b,
    Posenc_TileSums:$sums,
    Posenc_ProductElementsAttr:$elements,
    UnitAttr:$transposed,
    UnitAttr:$skips_zeros);
  let results = (outs Optional<AnyTypeOf<[AnyRankedTensor, AnyVectorOfNonZeroRank]>>:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    custom<ProductElements>($elements)
    oilist(`transposed` $transposed | `skips_zeros` $skips_zeros)
    `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)`
    custom<TileSums>($sums, type($sums), type($result)) attr-dict
  }];
  let builders = [
    /// The result has the type of `sums`, unless they are a memref.
    OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b,
                   "::mlir::Value":$sums,
                   "::mlir::posenc::ProductElements":$elements,
                   CArg<"bool", "false">:$transposed,
                   CArg<"bool", "false">:$skips_zeros)>];
  let extraClassDeclaration = [{
    /// Sums in registers are no destination.
    ::mlir::MutableOperandRange getDpsInitsMutable();
    /// Whether an element of the panels is a word of several numbers along the
    /// depth, and whether these are four integers.
    bool hasWords() { return getElements() != ProductElements::Floats; }
    bool hasQuads() {
      return getElements() == ProductElements::U8S8Quads ||
             getElements() == ProductElements::S8U8Quads;
    }
    bool hasVectorSums() {
      return ::llvm::isa<::mlir::VectorType>(getSums().getType());
    }
    /// Static sizes, or ShapedType::kDynamic. The depth is in elements of the
    /// panels, which are words for pairs and quads.
    int64_t getNumRows();
    int64_t getNumColumns();
    int64_t getDepth();
  }];
}

#endif // POSENC_IR_TILEPRODUCTOP_TD
