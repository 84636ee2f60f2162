//===- AttentionFunctions.cpp - attention and decode functions of a model -===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "posenc/IR/Attention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::AttentionConfig;

static constexpr int64_t kDynamic = ShapedType::kDynamic;

/// Checks the limits of the dialect that a config may exceed.
LogicalResult ModelModule::checkAttention() {
  if (!config.attention)
    return success();
  const AttentionConfig &attention = *config.attention;
  for (int64_t dim : {attention.headDim, attention.valueDim})
    if (dim > 65536)
      return emitError(loc)
             << "expected heads of at most 65536 channels, got " << dim;
  if (getAxes() && attention.isCausal && options.keyCache == KeyCache::Raw)
    return emitError(loc) << "raw keys of a model with several position axes "
                             "cannot be rotated by their index in the cache; "
                             "pass --k-cache=rotated";
  // The scores are multiplied and divided by f32 constants.
  constexpr double smallest = 0x1p-126, largest = 0x1p127;
  double cap = attention.softCap.value_or(1);
  if (!(cap >= smallest && cap <= largest))
    return emitError(loc) << "expected a soft cap within the range of f32, got "
                          << cap;
  double scale = attention.scale.value_or(1);
  if (!(scale >= smallest && scale <= largest))
    return emitError(loc)
           << "expected a scale of the scores within the range of f32, got "
           << scale;
  return success();
}

/// Adds the operands that only some models have: sinks and norm weights.
void ModelModule::addOperands(SmallVectorImpl<NamedType> &arguments,
                              bool withKeyNorm) {
  const AttentionConfig &attention = *config.attention;
  if (attention.hasSinks) {
    Type sums = dtype == ::posenc::frontend::DType::F64
                    ? Type(builder.getF64Type())
                    : Type(builder.getF32Type());
    arguments.push_back({"sinks", getType({config.numHeads}, sums)});
  }
  if (!attention.norm)
    return;
  auto getWeights = [&](int64_t heads) {
    return getType(
        {(attention.norm->allHeads ? heads : 1) * attention.headDim});
  };
  arguments.push_back({"q_norm", getWeights(config.numHeads)});
  if (withKeyNorm)
    arguments.push_back({"k_norm", getWeights(attention.numKeyValueHeads)});
}

Type ModelModule::getCacheType() {
  if (!options.cacheType)
    return getElementType();
  switch (*options.cacheType) {
  case CacheType::F16:
    return builder.getF16Type();
  case CacheType::BF16:
    return builder.getBF16Type();
  case CacheType::I8:
    return builder.getI8Type();
  case CacheType::F8E4M3:
    return Float8E4M3FNType::get(builder.getContext());
  case CacheType::F8E5M2:
    return Float8E5M2Type::get(builder.getContext());
  }
  llvm_unreachable("unknown cache type");
}

/// Creates the operation and the return of @attention or @decode, and assigns
/// the operands that both share by the names of the arguments. Argument 0 is
/// the queries, 1 the keys, and the next one that has no scales the values.
AttentionOp ModelModule::createAttention(func::FuncOp function,
                                         const Layer &layer,
                                         RankedTensorType type) {
  const AttentionConfig &attention = *config.attention;
  Value query = function.getArgument(0);
  SmallVector<Value> sizes = createSizes(query, type.getNumDynamicDims());
  Value init = createDestination(type, sizes);
  auto getName = [&](unsigned number) {
    return function
        .getArgAttrOfType<StringAttr>(number, PosencDialect::kNameAttrName)
        .getValue();
  };
  unsigned values = getName(2).ends_with("_scales") ? 3 : 2;
  auto op = AttentionOp::create(builder, loc, query, function.getArgument(1),
                                function.getArgument(values), init);
  func::ReturnOp::create(builder, loc, op.getResults());
  op.setScaleAttr(real(attention.scale));
  if (layer.window)
    op.setWindowLeft(*layer.window - 1);
  bool hasNorm = false;
  for (unsigned number = 2; number < function.getNumArguments(); ++number) {
    StringRef name = getName(number);
    Value operand = function.getArgument(number);
    if (name == "k_scales")
      op.getKeyScalesMutable().assign(operand);
    else if (name == "v_scales")
      op.getValueScalesMutable().assign(operand);
    else if (name == "lengths")
      op.getLengthsMutable().assign(operand);
    else if (name == "sinks")
      op.getSinksMutable().assign(operand);
    else if (name == "q_norm")
      op.getQueryNormMutable().assign(operand);
    else if (name == "k_norm")
      op.getKeyNormMutable().assign(operand);
    hasNorm |= name.ends_with("_norm");
  }
  if (hasNorm) {
    op.setNormEpsAttr(real(attention.norm->eps));
    if (attention.norm->weightOffset != 0)
      op.setNormOffsetAttr(real(attention.norm->weightOffset));
  }
  if (attention.softCap) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    buildSoftCap(builder, op, *attention.softCap);
  }
  return op;
}

static RotationAttr getRotation(const ::posenc::frontend::ModelConfig &config,
                                FrequenciesAttr frequencies, AxesAttr axes) {
  Pairing pairing = config.interleaved ? Pairing::Interleaved : Pairing::Half;
  return RotationAttr::get(frequencies.getContext(), pairing, frequencies,
                           config.attention->rotaryOffset, axes);
}

void ModelModule::buildAttention(FrequenciesAttr frequencies,
                                 const Layer &layer,
                                 const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  const AttentionConfig &attention = *config.attention;
  auto heads = [&](int64_t count, int64_t dim) {
    return getType({kDynamic, kDynamic, count, dim});
  };
  int64_t keyHeads = attention.numKeyValueHeads;
  RankedTensorType output = heads(config.numHeads, attention.valueDim);
  SmallVector<NamedType> arguments{
      {"q", heads(config.numHeads, attention.headDim), {"batch", "tokens"}},
      {"k", heads(keyHeads, attention.headDim)},
      {"v", heads(keyHeads, attention.valueDim)},
      {"positions", getPositionsType({kDynamic, kDynamic})}};
  addOperands(arguments, /*withKeyNorm=*/true);
  func::FuncOp function = createFunction(
      "attention" + suffix, describeAttention(frequencies, layer, suffix),
      arguments, {{"o", output}});
  AttentionOp op = createAttention(function, layer, output);
  op.setCausal(attention.isCausal);
  // Causal attention hides the keys after a query anyway.
  if (layer.window && !attention.isCausal)
    op.setWindowRight(*layer.window - 1);
  if (!layer.rotates)
    return;
  RotationAttr rotation = getRotation(config, frequencies, getAxes());
  op.setQueryRotationAttr(rotation);
  op.setKeyRotationAttr(rotation);
  op.getQueryPositionsMutable().assign(function.getArgument(3));
  op.getKeyPositionsMutable().assign(function.getArgument(3));
}

void ModelModule::buildDecode(FrequenciesAttr frequencies, const Layer &layer,
                              const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  const AttentionConfig &attention = *config.attention;
  auto cache = [&](int64_t dim) {
    return getType({kDynamic, attention.numKeyValueHeads, kDynamic, dim},
                   getCacheType());
  };
  bool isRaw = options.keyCache == KeyCache::Raw;
  auto heads = [&](int64_t dim) {
    return getType({kDynamic, options.decodeTokens, config.numHeads, dim});
  };
  RankedTensorType output = heads(attention.valueDim);
  SmallVector<NamedType> arguments{
      {"q", heads(attention.headDim), {"batch"}},
      {"k_cache", cache(attention.headDim), {"batch", "capacity"}},
      {"v_cache", cache(attention.valueDim)},
      {"lengths", getType({kDynamic}, builder.getI64Type())}};
  if (getCacheType().getIntOrFloatBitWidth() == 8) {
    RankedTensorType scales = getType(
        {kDynamic, attention.numKeyValueHeads, kDynamic}, builder.getF32Type());
    arguments.insert(arguments.begin() + 3, {"v_scales", scales});
    arguments.insert(arguments.begin() + 2, {"k_scales", scales});
  }
  // The positions of a token on several axes do not follow from its index.
  bool hasPositions = getAxes() && layer.rotates;
  if (hasPositions)
    arguments.push_back(
        {"positions", getPositionsType({kDynamic, options.decodeTokens})});
  addOperands(arguments, /*withKeyNorm=*/isRaw);
  func::FuncOp function = createFunction(
      "decode" + suffix, describeDecode(frequencies, layer, suffix), arguments,
      {{"o", output}});
  AttentionOp op = createAttention(function, layer, output);
  op.setKeyLayout(HeadLayout::HeadMajor);
  // A single query is the last token, so it sees all keys without a mask.
  op.setCausal(options.decodeTokens > 1);
  if (!layer.rotates)
    return;
  // Without operands for positions, the operation rotates queries at the last
  // positions of the sequence and raw keys at their index in the cache.
  RotationAttr rotation = getRotation(config, frequencies, getAxes());
  op.setQueryRotationAttr(rotation);
  if (hasPositions)
    for (BlockArgument argument : function.getArguments())
      if (function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                PosencDialect::kNameAttrName) ==
          "positions")
        op.getQueryPositionsMutable().assign(argument);
  if (isRaw)
    op.setKeyRotationAttr(rotation);
}

void ModelModule::buildAttentionFunctions() {
  if (!config.attention)
    return;
  const AttentionConfig &attention = *config.attention;
  auto buildSet = [&](const Layer &layer, const std::string &suffix) {
    FrequenciesAttr ofLayer = layerFrequencies.lookup(layer.type);
    if (!ofLayer)
      ofLayer = frequencies;
    buildAttention(ofLayer, layer, suffix);
    // A bidirectional model does not decode.
    if (attention.isCausal)
      buildDecode(ofLayer, layer, suffix);
  };
  ArrayRef<Layer> layers = attention.layers;
  // If all layer types agree, functions without a suffix are built as well.
  if (!layers.front().type.empty() && layerFrequencies.empty() &&
      llvm::all_of(layers, [&](const Layer &layer) {
        return layer.isLike(layers.front());
      }))
    buildSet(layers.front(), "");
  for (const Layer &layer : layers)
    buildSet(layer, layer.type.empty() ? "" : "_" + layer.type);
}
