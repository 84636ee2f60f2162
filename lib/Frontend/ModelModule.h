//===- ModelModule.h - builder of a model's module --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_MODELMODULE_H
#define POSENC_LIB_FRONTEND_MODELMODULE_H

#include "posenc/Frontend/ModuleBuilder.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::posenc {

constexpr int64_t kDynamic = ShapedType::kDynamic;

/// Builds the module of one model. ModuleBuilder.cpp has the rotations,
/// AttentionFunctions.cpp the attention, and FunctionDocs.cpp the comments.
class ModelModule {
public:
  ModelModule(MLIRContext &context,
              const ::posenc::frontend::ModelConfig &config,
              const ModuleBuilderOptions &options)
      : builder(&context),
        loc(options.location.value_or(builder.getUnknownLoc())), config(config),
        options(options), dtype(options.dtype.value_or(config.dtype)) {}

  OwningOpRef<ModuleOp> build();

private:
  struct NamedType {
    std::string name;
    Type type;
    /// The names of the dynamic sizes.
    SmallVector<StringRef, 2> sizes = {};
  };

  /// Returns the number as an attribute, or null if there is none.
  FloatAttr real(std::optional<double> value) {
    return value ? builder.getF64FloatAttr(*value) : FloatAttr();
  }
  /// Returns null after an error diagnostic.
  FrequenciesAttr getFrequencies(int64_t rotaryDim, double theta,
                                 FrequencyScalingInterface scaling);
  /// Returns the attribute of the position axes, or null for a single one.
  AxesAttr getAxes();
  /// Returns the integer type of positions, lengths, slots and cu_seqlens.
  IntegerType getIndexType() {
    return builder.getIntegerType(options.indexWidth);
  }
  /// Returns the type of positions of the shape, for each axis.
  RankedTensorType getPositionsType(ArrayRef<int64_t> shape);
  Type getElementType();
  /// Returns the element type of KV caches.
  Type getCacheType();
  RankedTensorType getType(ArrayRef<int64_t> shape, Type elementType = {});
  /// Creates a public function and sets the insertion point to the start of its
  /// body. `suffix` names its layers, after that of the set; `doc` is its
  /// comment in the C header.
  func::FuncOp createFunction(StringRef family, StringRef suffix, StringRef doc,
                              ArrayRef<NamedType> arguments,
                              ArrayRef<NamedType> results);
  Value createDestination(RankedTensorType type, ValueRange sizes);
  SmallVector<Value> createSizes(Value tensor, int64_t count);
  void buildSincos(FrequenciesAttr frequencies, const std::string &suffix);
  void buildRope(FrequenciesAttr frequencies, const std::string &suffix);

  // RopeLength.cpp; frequencies are null for layers that do not rotate.
  /// Adds the argument `rope_length`, if the frequencies need it.
  void addRopeLength(SmallVectorImpl<NamedType> &arguments,
                     FrequenciesAttr frequencies);
  /// Returns the turns of the frequencies, or none if they do not depend on the
  /// length. Without the argument `rope_length` it is the largest element of
  /// the argument `source`, and one more for positions.
  SmallVector<Value, 2> createTurns(func::FuncOp function,
                                    FrequenciesAttr frequencies,
                                    StringRef source);
  /// Describes what the length is, or returns an empty string if the
  /// frequencies do not depend on it.
  std::string describeLength(FrequenciesAttr frequencies, StringRef source);

  // FunctionDocs.cpp
  /// Returns the number with up to nine digits.
  static std::string spell(double number);
  using Layer = ::posenc::frontend::LayerAttention;
  ArrayRef<int64_t> findLayers(StringRef suffix);
  std::string describeLayers(StringRef ownSuffix);
  std::string describeAxes();
  std::string describeRotation(FrequenciesAttr frequencies, int64_t headDim,
                               int64_t offset);
  std::string describeVisible(const Layer &layer);
  /// Says that the functions of the layer do not rotate.
  StringRef describeUnrotated();
  /// Describes the rotation of heads of the attention.
  std::string describeHeadRotation(FrequenciesAttr frequencies);
  /// Describes the rotations of functions on queries and keys of tokens.
  std::string describeRotations(FrequenciesAttr frequencies,
                                const Layer &layer);
  /// Describes the keys in a cache of layers that rotate.
  StringRef describeCachedKeys();
  std::string describeLogSumExp();
  std::string describeScores(const Layer &layer);
  std::string describeNorms(bool ofRawKeys);
  std::string describeSincos(FrequenciesAttr frequencies, StringRef suffix);
  std::string describeRope(FrequenciesAttr frequencies, StringRef suffix);
  std::string describeAttention(FrequenciesAttr frequencies, const Layer &layer,
                                StringRef suffix);
  std::string describeDecode(FrequenciesAttr frequencies, const Layer &layer,
                             StringRef suffix);

  // LayerSetFunctions.cpp
  /// Builds the functions of each set of layers.
  OwningOpRef<ModuleOp> buildSets();
  LogicalResult
  appendSharedRotation(ModuleOp module,
                       ArrayRef<const ::posenc::frontend::ModelConfig *> sets,
                       StringRef suffix);
  LogicalResult appendFunctions(ModuleOp module,
                                const ::posenc::frontend::ModelConfig &set,
                                StringRef leftOut);

  // AttentionFunctions.cpp
  LogicalResult checkAttention();
  void buildAttentionFunctions();
  void buildAttention(FrequenciesAttr frequencies, const Layer &layer,
                      const std::string &suffix);
  void buildDecode(FrequenciesAttr frequencies, const Layer &layer,
                   const std::string &suffix);
  void addOperands(SmallVectorImpl<NamedType> &arguments, bool withKeyNorm);
  AttentionOp createAttention(func::FuncOp function, const Layer &layer);
  /// Returns the results of an attention whose output has that type.
  SmallVector<NamedType> getOutputs(RankedTensorType output);
  /// Sets the causal mask and the window of an attention of many queries.
  void setMask(AttentionOp op, const Layer &layer);
  /// Whether queries do not see later keys.
  bool isMasked(const Layer &layer);
  /// Whether the layer has @decode and the functions of a server.
  bool hasCache(const Layer &layer);
  /// Whether the functions of the layer rotate.
  bool rotates(const Layer &layer) { return options.rotates && layer.rotates; }
  /// Whether @attention, @attention_ragged and @attention_paged of the layer
  /// have `positions`.
  bool hasPositions(const Layer &layer);
  void rotate(func::FuncOp function, AttentionOp op,
              FrequenciesAttr frequencies, StringRef source, bool rotatesKeys);
  /// Returns the argument of that name, or null.
  Value getArgument(func::FuncOp function, StringRef name);
  /// Returns the argument `<letter>`, `<letter>_cache` or `<letter>_pages`.
  Value getRows(func::FuncOp function, char letter);
  bool isQuantized() { return getCacheType().getIntOrFloatBitWidth() == 8; }
  /// Whether one scale of all keys and one of all values are given.
  bool hasGivenScales() {
    return isQuantized() && options.cacheScales == CacheScales::Tensor;
  }
  std::string describeCaches();

  // AttentionBias.cpp
  void addBiasOperand(SmallVectorImpl<NamedType> &arguments);
  /// Adds the bias of the model to the score region. `table` is null for ALiBi.
  void buildBias(AttentionOp op, const Layer &layer, Value table);
  std::string describeBias(const Layer &layer);
  void buildChunkMask(AttentionOp op, int64_t chunk);

  // QueryTemperature.cpp
  /// Emits the queries times the factor of their positions.
  Value scaleQueries(func::FuncOp function, Value query);
  /// Describes the factor, or returns an empty string if there is none.
  std::string describeTemperature(const Layer &layer);

  // ServingFunctions.cpp
  void buildServing(FrequenciesAttr frequencies, const Layer &layer,
                    const std::string &suffix);
  void buildAppend(FrequenciesAttr frequencies, const Layer &layer,
                   bool isPaged, const std::string &suffix);
  void buildRagged(FrequenciesAttr frequencies, const Layer &layer,
                   const std::string &suffix);
  void buildPaged(FrequenciesAttr frequencies, const Layer &layer,
                  const std::string &suffix);
  /// Adds a cache of keys and one of values, each with its scales if it is
  /// quantized. `kind` is `cache` or `pages`.
  void addCaches(SmallVectorImpl<NamedType> &arguments, StringRef kind);
  RotationAttr getRotation(FrequenciesAttr frequencies);
  std::string describeAppend(FrequenciesAttr frequencies, const Layer &layer,
                             bool isPaged, StringRef suffix);
  std::string describeRagged(FrequenciesAttr frequencies, const Layer &layer,
                             StringRef suffix);
  std::string describePaged(FrequenciesAttr frequencies, const Layer &layer,
                            StringRef suffix);

  OpBuilder builder;
  Location loc;
  const ::posenc::frontend::ModelConfig &config;
  const ModuleBuilderOptions &options;
  ::posenc::frontend::DType dtype;
  /// The frequencies of the model, and of each layer type if they differ.
  FrequenciesAttr frequencies;
  llvm::StringMap<FrequenciesAttr> layerFrequencies;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_FRONTEND_MODELMODULE_H
