//===- ServingFunctions.cpp - cache and batch functions of a model --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that a server calls besides @decode: appending to a cache, and
// attention of sequences of different lengths in one call.
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::AttentionConfig;

void ModelModule::buildAppend(FrequenciesAttr frequencies, const Layer &layer,
                              bool isPaged, const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  const AttentionConfig &attention = *config.attention;
  auto rows = [&](int64_t dim) {
    SmallVector<int64_t> shape{kDynamic, attention.numKeyValueHeads, dim};
    if (!isPaged)
      shape.insert(shape.begin(), kDynamic);
    return getType(shape);
  };
  RankedTensorType list = getType({kDynamic}, getIndexType());
  bool isRaw = options.keyCache == KeyCache::Raw;
  bool rotates = this->rotates(layer) && !isRaw;
  FrequenciesAttr rotating = rotates ? frequencies : FrequenciesAttr();
  SmallVector<NamedType> arguments{{"k", rows(attention.headDim)},
                                   {"v", rows(attention.valueDim)}};
  if (isPaged) {
    arguments.front().sizes = {"tokens"};
    if (options.rotates)
      arguments.push_back({"positions", getPositionsType({kDynamic})});
    addRopeLength(arguments, rotating);
    arguments.push_back({"slots", list});
  } else {
    arguments.front().sizes = {"batch", "tokens"};
    arguments.push_back({"lengths", list});
    addRopeLength(arguments, rotating);
    // Otherwise the position of a token is its index in the cache.
    if (rotates && getAxes())
      arguments.push_back(
          {"positions", getPositionsType({kDynamic, kDynamic})});
  }
  size_t firstCache = arguments.size();
  addCaches(arguments, isPaged ? "pages" : "cache");
  SmallVector<NamedType> results;
  std::string kind = isPaged ? "_pages" : "_cache";
  for (const NamedType &cache : ArrayRef(arguments).drop_front(firstCache))
    if (!hasGivenScales() || StringRef(cache.name).ends_with(kind))
      results.push_back({cache.name + "_out", cache.type});
  // Raw keys are normed by the functions that read the cache.
  bool hasNorm = attention.norm && !isRaw;
  if (hasNorm)
    arguments.push_back({"k_norm", getType({attention.headDim})});
  func::FuncOp function = createFunction(
      isPaged ? "append_paged" : "append", suffix,
      describeAppend(frequencies, layer, isPaged, suffix) +
          describeLength(rotating, isPaged ? "positions" : "lengths"),
      arguments, results);
  auto get = [&](StringRef name) { return getArgument(function, name); };

  SmallVector<Value> inits{get("k" + kind), get("v" + kind)};
  bool writesScales = isQuantized() && !hasGivenScales();
  if (writesScales)
    inits.append({get("k_scales"), get("v_scales")});
  SmallVector<Type> types = llvm::to_vector(ValueRange(inits).getTypes());
  auto layout = [&](HeadLayout value) {
    return HeadLayoutAttr::get(builder.getContext(), value);
  };
  SmallVector<Value, 2> turns =
      createTurns(function, rotating, isPaged ? "positions" : "lengths");
  auto op = KvAppendOp::create(
      builder, loc, types, get("k"), get("v"),
      rotates ? get("positions") : Value(), hasNorm ? get("k_norm") : Value(),
      isPaged ? Value() : get("lengths"), isPaged ? get("slots") : Value(),
      turns, hasGivenScales() ? get("k_scales") : Value(),
      hasGivenScales() ? get("v_scales") : Value(), inits,
      layout(HeadLayout::TokenMajor), layout(HeadLayout::HeadMajor),
      rotates ? getRotation(frequencies) : RotationAttr(),
      hasNorm ? real(attention.norm->eps) : FloatAttr(),
      hasNorm && attention.norm->weightOffset != 0
          ? real(attention.norm->weightOffset)
          : FloatAttr());
  SmallVector<Value> returned = llvm::to_vector_of<Value>(op.getResults());
  // Each cache is followed by its scales, as among the arguments.
  if (writesScales)
    std::swap(returned[1], returned[2]);
  func::ReturnOp::create(builder, loc, returned);
}

void ModelModule::buildRagged(FrequenciesAttr frequencies, const Layer &layer,
                              const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  const AttentionConfig &attention = *config.attention;
  auto heads = [&](int64_t count, int64_t dim) {
    return getType({kDynamic, count, dim});
  };
  int64_t keyHeads = attention.numKeyValueHeads;
  RankedTensorType output = heads(config.numHeads, attention.valueDim);
  SmallVector<NamedType> arguments{
      {"q", heads(config.numHeads, attention.headDim), {"tokens"}},
      {"k", heads(keyHeads, attention.headDim)},
      {"v", heads(keyHeads, attention.valueDim)}};
  // Positions would say that there are as many keys as queries.
  if (!options.rotates)
    arguments[1].sizes = {"keys"};
  if (hasPositions(layer))
    arguments.push_back({"positions", getPositionsType({kDynamic})});
  FrequenciesAttr rotating = rotates(layer) ? frequencies : FrequenciesAttr();
  addRopeLength(arguments, rotating);
  arguments.push_back(
      {"cu_seqlens", getType({kDynamic}, getIndexType()), {"batch_plus_1"}});
  addOperands(arguments, /*withKeyNorm=*/true);
  func::FuncOp function =
      createFunction("attention_ragged", suffix,
                     describeRagged(frequencies, layer, suffix) +
                         describeLength(rotating, "positions"),
                     arguments, getOutputs(output));
  AttentionOp op = createAttention(function, layer);
  // Queries and keys are of the same sequences.
  Value list = getArgument(function, "cu_seqlens");
  op.getCuSeqlensMutable().assign({list, list});
  setMask(op, layer);
  if (!rotates(layer))
    return;
  rotate(function, op, frequencies, "positions", /*rotatesKeys=*/true);
  Value positions = getArgument(function, "positions");
  op.getQueryPositionsMutable().assign(positions);
  op.getKeyPositionsMutable().assign(positions);
}

void ModelModule::buildPaged(FrequenciesAttr frequencies, const Layer &layer,
                             const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  const AttentionConfig &attention = *config.attention;
  auto heads = [&](int64_t dim) {
    return getType({kDynamic, config.numHeads, dim});
  };
  bool isRaw = options.keyCache == KeyCache::Raw;
  RankedTensorType output = heads(attention.valueDim);
  RankedTensorType list = getType({kDynamic}, getIndexType());
  SmallVector<NamedType> arguments{{"q", heads(attention.headDim), {"tokens"}}};
  if (hasPositions(layer))
    arguments.push_back({"positions", getPositionsType({kDynamic})});
  FrequenciesAttr rotating = rotates(layer) ? frequencies : FrequenciesAttr();
  addRopeLength(arguments, rotating);
  addCaches(arguments, "pages");
  arguments.push_back({"block_table",
                       getType({kDynamic, kDynamic}, builder.getI32Type()),
                       {"batch", "max_pages"}});
  arguments.push_back({"cu_seqlens", list, {"batch_plus_1"}});
  arguments.push_back({"lengths", list});
  addOperands(arguments, /*withKeyNorm=*/isRaw);
  func::FuncOp function =
      createFunction("attention_paged", suffix,
                     describePaged(frequencies, layer, suffix) +
                         describeLength(rotating, "lengths"),
                     arguments, getOutputs(output));
  AttentionOp op = createAttention(function, layer);
  op.setKeyLayout(HeadLayout::HeadMajor);
  setMask(op, layer);
  if (!rotates(layer))
    return;
  // Without positions, raw keys rotate at their index in the sequence.
  rotate(function, op, frequencies, "lengths", /*rotatesKeys=*/isRaw);
  op.getQueryPositionsMutable().assign(getArgument(function, "positions"));
}

void ModelModule::buildServing(FrequenciesAttr frequencies, const Layer &layer,
                               const std::string &suffix) {
  buildAppend(frequencies, layer, /*isPaged=*/false, suffix);
  buildAppend(frequencies, layer, /*isPaged=*/true, suffix);
  buildRagged(frequencies, layer, suffix);
  buildPaged(frequencies, layer, suffix);
}
