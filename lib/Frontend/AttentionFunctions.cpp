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

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::AttentionConfig;

/// Checks the limits of the dialect that a config may exceed.
LogicalResult ModelModule::checkAttention() {
  if (!config.attention)
    return success();
  const AttentionConfig &attention = *config.attention;
  for (int64_t dim : {attention.headDim, attention.valueDim})
    if (dim > 65536)
      return emitError(loc)
             << "expected heads of at most 65536 channels, got " << dim;
  if (options.serving &&
      !llvm::any_of(attention.layers,
                    [&](const Layer &layer) { return hasCache(layer); }))
    return emitError(loc) << "a model whose attention is bidirectional has no "
                             "functions that append to a cache or read it; "
                             "remove them from --kernels, or pass --causal=no "
                             "to build them without a causal mask";
  if (options.serving && attention.norm && attention.norm->allHeads &&
      options.keyCache == KeyCache::Rotated)
    return emitError(loc)
           << "functions that append to a cache cannot norm all heads of a "
              "token together, as this model does; without --qk-norm they take "
              "keys after the norm";
  // The norm of scaled queries would remove the scale.
  if (attention.norm && attention.temperature)
    return emitError(loc)
           << "--qk-norm cannot norm queries that are multiplied by a factor "
              "of their position ('llama_4_scaling_beta'); without it, "
              "functions take queries and keys after the norm";
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
  // The limit of posenc.alibi (alibi_c1).
  if (attention.bias && config.numHeads > 65536)
    return emitError(loc) << "expected at most 65536 heads for a bias of the "
                             "scores, got "
                          << config.numHeads;
  if (config.axes && options.rotates && options.keyCache == KeyCache::Raw &&
      llvm::any_of(attention.layers,
                   [&](const Layer &layer) { return hasCache(layer); }))
    return emitError(loc)
           << "--k-cache=raw needs the positions of keys, which do not follow "
              "from their index in the cache for a model with several position "
              "axes ('mrope_section'): expected --k-cache=rotated";
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
    return addBiasOperand(arguments);
  auto getWeights = [&](int64_t heads) {
    return getType(
        {(attention.norm->allHeads ? heads : 1) * attention.headDim});
  };
  arguments.push_back({"q_norm", getWeights(config.numHeads)});
  if (withKeyNorm)
    arguments.push_back({"k_norm", getWeights(attention.numKeyValueHeads)});
  addBiasOperand(arguments);
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

Value ModelModule::getArgument(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (function
            .getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                          PosencDialect::kNameAttrName)
            .getValue() == name)
      return argument;
  return {};
}

Value ModelModule::getRows(func::FuncOp function, char letter) {
  for (StringRef suffix : {"", "_cache", "_pages"})
    if (Value argument =
            getArgument(function, std::string(1, letter) + suffix.str()))
      return argument;
  return {};
}

bool ModelModule::isMasked(const Layer &layer) {
  return options.masksLaterKeys && config.attention->isCausalIn(layer);
}

bool ModelModule::hasCache(const Layer &layer) {
  return options.masksLaterKeys ? config.attention->isCausalIn(layer)
                                : !layer.isEncoder;
}

bool ModelModule::hasPositions(const Layer &layer) {
  // Layers that do not rotate in a model that does have the same arguments as
  // the others.
  const auto &temperature = config.attention->temperature;
  return options.rotates || (temperature && temperature->isIn(layer));
}

SmallVector<ModelModule::NamedType>
ModelModule::getOutputs(RankedTensorType output) {
  SmallVector<NamedType> results{{"o", output}};
  if (options.logSumExp) {
    Type sums = dtype == ::posenc::frontend::DType::F64
                    ? Type(builder.getF64Type())
                    : Type(builder.getF32Type());
    results.push_back({"lse", getType(output.getShape().drop_back(), sums)});
  }
  return results;
}

void ModelModule::setMask(AttentionOp op, const Layer &layer) {
  bool isCausal = isMasked(layer);
  op.setCausal(isCausal);
  // Causal attention hides the keys after a query anyway.
  if (layer.window && !isCausal)
    op.setWindowRight(*layer.window - 1);
}

/// Creates the operation and the return of an attention function. Assigns the
/// operands that these functions share, by the names of the arguments; the
/// rotations and their positions are left to the caller.
AttentionOp ModelModule::createAttention(func::FuncOp function,
                                         const Layer &layer) {
  const AttentionConfig &attention = *config.attention;
  Value query = getArgument(function, "q");
  if (attention.temperature && attention.temperature->isIn(layer))
    query = scaleQueries(function, query);
  SmallVector<Value> sizes = createSizes(
      query, cast<RankedTensorType>(query.getType()).getNumDynamicDims());
  SmallVector<Value> inits;
  for (Type type : function.getResultTypes())
    inits.push_back(createDestination(cast<RankedTensorType>(type), sizes));
  auto op = AttentionOp::create(builder, loc, query, getRows(function, 'k'),
                                getRows(function, 'v'), inits);
  func::ReturnOp::create(builder, loc, op.getResults());
  op.setScaleAttr(real(attention.scale));
  if (layer.window)
    op.setWindowLeft(*layer.window - 1);
  auto assign = [&](MutableOperandRange operands, StringRef name) {
    Value argument = getArgument(function, name);
    if (argument)
      operands.assign(argument);
    return static_cast<bool>(argument);
  };
  assign(op.getKeyScalesMutable(), "k_scales");
  assign(op.getValueScalesMutable(), "v_scales");
  assign(op.getLengthsMutable(), "lengths");
  assign(op.getCuSeqlensMutable(), "cu_seqlens");
  assign(op.getBlockTableMutable(), "block_table");
  assign(op.getSinksMutable(), "sinks");
  bool hasNorm = assign(op.getQueryNormMutable(), "q_norm");
  hasNorm |= assign(op.getKeyNormMutable(), "k_norm");
  Value biasTable = getArgument(function, "rel_bias");
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
  buildBias(op, layer, biasTable);
  if (layer.chunk)
    buildChunkMask(op, *layer.chunk);
  return op;
}

/// Hides the tokens of other chunks than that of the query.
void ModelModule::buildChunkMask(AttentionOp op, int64_t chunk) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  buildWhere(
      builder, op, [&](OpBuilder &nested, Location at, ValueRange arguments) {
        Value size = arith::ConstantIndexOp::create(nested, at, chunk);
        Value ofQuery =
            arith::FloorDivSIOp::create(nested, at, arguments[2], size);
        Value ofKey = arith::DivUIOp::create(nested, at, arguments[3], size);
        return arith::CmpIOp::create(nested, at, arith::CmpIPredicate::eq,
                                     ofQuery, ofKey)
            .getResult();
      });
}

RotationAttr ModelModule::getRotation(FrequenciesAttr frequencies) {
  Pairing pairing = config.interleaved ? Pairing::Interleaved : Pairing::Half;
  return RotationAttr::get(frequencies.getContext(), pairing, frequencies,
                           config.attention->rotaryOffset, getAxes());
}

/// Sets the rotations of queries, and of keys if `rotatesKeys`. `source` is the
/// argument from which the length follows.
void ModelModule::rotate(func::FuncOp function, AttentionOp op,
                         FrequenciesAttr frequencies, StringRef source,
                         bool rotatesKeys) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  RotationAttr rotation = getRotation(frequencies);
  op.setQueryRotationAttr(rotation);
  if (rotatesKeys)
    op.setKeyRotationAttr(rotation);
  op.getTurnsMutable().assign(createTurns(function, frequencies, source));
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
      {"v", heads(keyHeads, attention.valueDim)}};
  // Positions would say that there are as many keys as queries.
  if (!options.rotates)
    arguments[1].sizes = {"batch", "keys"};
  if (hasPositions(layer))
    arguments.push_back({"positions", getPositionsType({kDynamic, kDynamic})});
  FrequenciesAttr rotating = rotates(layer) ? frequencies : FrequenciesAttr();
  addRopeLength(arguments, rotating);
  addOperands(arguments, /*withKeyNorm=*/true);
  func::FuncOp function =
      createFunction("attention", suffix,
                     describeAttention(frequencies, layer, suffix) +
                         describeLength(rotating, "positions"),
                     arguments, getOutputs(output));
  AttentionOp op = createAttention(function, layer);
  setMask(op, layer);
  if (!rotates(layer))
    return;
  rotate(function, op, frequencies, "positions", /*rotatesKeys=*/true);
  op.getQueryPositionsMutable().assign(function.getArgument(3));
  op.getKeyPositionsMutable().assign(function.getArgument(3));
}

void ModelModule::addCaches(SmallVectorImpl<NamedType> &arguments,
                            StringRef kind) {
  const AttentionConfig &attention = *config.attention;
  SmallVector<StringRef, 2> sizes{"batch", "capacity"};
  if (kind == "pages")
    sizes = {"pages", "page_size"};
  for (auto [letter, dim] : {std::pair('k', attention.headDim),
                             std::pair('v', attention.valueDim)}) {
    std::string name(1, letter);
    RankedTensorType type = getType(
        {kDynamic, attention.numKeyValueHeads, kDynamic, dim}, getCacheType());
    arguments.push_back({name + "_" + kind.str(), type});
    if (letter == 'k')
      arguments.back().sizes = sizes;
    if (!isQuantized())
      continue;
    SmallVector<int64_t> scales(type.getShape().drop_back());
    if (hasGivenScales())
      scales.assign(3, 1);
    arguments.push_back(
        {name + "_scales", getType(scales, builder.getF32Type())});
  }
}

void ModelModule::buildDecode(FrequenciesAttr frequencies, const Layer &layer,
                              const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  const AttentionConfig &attention = *config.attention;
  bool isRaw = options.keyCache == KeyCache::Raw;
  auto heads = [&](int64_t dim) {
    return getType({kDynamic, options.decodeTokens, config.numHeads, dim});
  };
  RankedTensorType output = heads(attention.valueDim);
  SmallVector<NamedType> arguments{{"q", heads(attention.headDim), {"batch"}}};
  addCaches(arguments, "cache");
  arguments.push_back({"lengths", getType({kDynamic}, getIndexType())});
  FrequenciesAttr rotating = rotates(layer) ? frequencies : FrequenciesAttr();
  addRopeLength(arguments, rotating);
  // The positions of a token on several axes do not follow from its index.
  bool hasPositions = getAxes() && rotates(layer);
  if (hasPositions)
    arguments.push_back(
        {"positions", getPositionsType({kDynamic, options.decodeTokens})});
  addOperands(arguments, /*withKeyNorm=*/isRaw);
  func::FuncOp function =
      createFunction("decode", suffix,
                     describeDecode(frequencies, layer, suffix) +
                         describeLength(rotating, "lengths"),
                     arguments, getOutputs(output));
  AttentionOp op = createAttention(function, layer);
  op.setKeyLayout(HeadLayout::HeadMajor);
  // A single query is the last token, so it sees all keys without a mask.
  if (options.decodeTokens > 1)
    setMask(op, layer);
  if (!rotates(layer))
    return;
  // Without operands for positions, the operation rotates queries at the last
  // positions of the sequence and raw keys at their index in the cache.
  rotate(function, op, frequencies, "lengths", /*rotatesKeys=*/isRaw);
  if (hasPositions)
    op.getQueryPositionsMutable().assign(getArgument(function, "positions"));
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
    // A model with a causal mask does not decode if it is bidirectional. In a
    // model with an encoder and a decoder only the decoder decodes, so its
    // function needs no suffix.
    bool hasEncoder = attention.layers.front().isEncoder;
    if (!hasCache(layer))
      return;
    std::string ofDecoder = hasEncoder ? "" : suffix;
    buildDecode(ofLayer, layer, ofDecoder);
    if (options.serving)
      buildServing(ofLayer, layer, ofDecoder);
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
