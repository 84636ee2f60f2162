//===- TuningOptions.td - tuning of the CPU code -----------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_TUNINGOPTIONS_TD
#define POSENC_CODEGEN_TUNINGOPTIONS_TD

include "mlir/Pass/PassBase.td"

/// A pass option for a field of Tuning. The field is documented in Tuning.def,
/// which also defines the options of pipelines and the keys of tuning files.
class Posenc_TuningOption<string name, string flag>
    : Option<name, flag, "uint64_t", "::mlir::posenc::Tuning()." # name,
             "The field " # name # " of Tuning">;

defvar Posenc_TuningOptions = [
  Posenc_TuningOption<"prefetchCache", "prefetch-cache">,
  Posenc_TuningOption<"prefetchInOrder", "prefetch-in-order">,
  Posenc_TuningOption<"streamsInOrder", "streams-in-order">,
  Posenc_TuningOption<"prefetchDistance", "prefetch-distance">,
  Posenc_TuningOption<"streams", "streams">,
  Posenc_TuningOption<"streamAhead", "stream-ahead">,
  Posenc_TuningOption<"narrowStreams", "narrow-streams">,
  Posenc_TuningOption<"narrowAhead", "narrow-stream-ahead">,
  Posenc_TuningOption<"blockPositions", "block-positions">,
  Posenc_TuningOption<"smallBlockPositions", "small-block-positions">,
  Posenc_TuningOption<"blockBelow", "block-below">,
  Posenc_TuningOption<"streamBlockBytes", "stream-block-bytes">,
  Posenc_TuningOption<"streamFrom", "stream-from">,
  Posenc_TuningOption<"streamTablesFrom", "stream-tables-from">,
  Posenc_TuningOption<"prefetchFrom", "prefetch-from">,
  Posenc_TuningOption<"rowVectorBytes", "row-vector-bytes">,
  Posenc_TuningOption<"decodePrefetches", "decode-prefetches">,
  Posenc_TuningOption<"decodeRowPrefetches", "decode-row-prefetches">,
  Posenc_TuningOption<"attentionQueries", "attention-queries">,
  Posenc_TuningOption<"attentionTileBytes", "attention-tile-bytes">,
  Posenc_TuningOption<"attentionTasks", "attention-tasks">,
  Posenc_TuningOption<"attentionPrefetch", "attention-prefetch">,
  Posenc_TuningOption<"attentionTileRows", "attention-tile-rows">,
  Posenc_TuningOption<"attentionNestRows", "attention-nest-rows">,
  Posenc_TuningOption<"attentionNestTiles", "attention-nest-tiles">,
  Posenc_TuningOption<"productTileRows", "product-tile-rows">,
  Posenc_TuningOption<"productTileVectors", "product-tile-vectors">,
  Posenc_TuningOption<"productRows", "product-rows">,
  Posenc_TuningOption<"productPanelRows", "product-panel-rows">,
  Posenc_TuningOption<"productColumns", "product-columns">,
  Posenc_TuningOption<"productPanelBytes", "product-panel-bytes">,
  Posenc_TuningOption<"productPeel", "product-peel">,
  Posenc_TuningOption<"productCopiedRows", "product-copied-rows">,
  Posenc_TuningOption<"productDotRows", "product-dot-rows">,
  Posenc_TuningOption<"productDotColumns", "product-dot-columns">,
  Posenc_TuningOption<"productDotDepth", "product-dot-depth">,
  Posenc_TuningOption<"productUnroll", "product-unroll">,
  Posenc_TuningOption<"productPrefetch", "product-prefetch">,
  Posenc_TuningOption<"productPanelCache", "product-panel-cache">,
  Posenc_TuningOption<"codeTileRows", "code-tile-rows">,
  Posenc_TuningOption<"codeTileVectors", "code-tile-vectors">,
  Posenc_TuningOption<"codeUnpackingRows", "code-unpacking-rows">,
  Posenc_TuningOption<"codeBufferRows", "code-buffer-rows">,
  Posenc_TuningOption<"codeDotBufferRows", "code-dot-buffer-rows">,
  Posenc_TuningOption<"codeBufferBytes", "code-buffer-bytes">,
  Posenc_TuningOption<"codeRowBytes", "code-row-bytes">
];

#endif // POSENC_CODEGEN_TUNINGOPTIONS_TD
