//===- ModuleBuilder.cpp - module with the kernels of a model -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::ModelConfig;

AxesAttr ModelModule::getAxes() {
  if (!config.axes)
    return {};
  using Layout = ::posenc::frontend::PositionAxes::Layout;
  AxisLayout layout = config.axes->layout == Layout::Interleaved
                          ? AxisLayout::Interleaved
                      : config.axes->areCoordinates() ? AxisLayout::Axial
                                                      : AxisLayout::Contiguous;
  return AxesAttr::get(builder.getContext(), layout, config.axes->sections);
}

RankedTensorType ModelModule::getPositionsType(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> sizes;
  if (config.axes)
    sizes.push_back(config.axes->sections.size());
  llvm::append_range(sizes, shape);
  bool areFloats = config.axes && config.axes->areCoordinates();
  return getType(sizes,
                 areFloats ? Type(builder.getF32Type()) : Type(getIndexType()));
}

/// Returns the frequencies 0, 2, ..., 1, 3, ... of a model as an explicit list.
static FrequenciesAttr alternate(FrequenciesAttr frequencies) {
  SmallVector<::posenc::BigFloat> all = frequencies.computeFrequencies();
  SmallVector<double> ordered;
  for (size_t first : {0, 1})
    for (size_t pair = first; pair < all.size(); pair += 2)
      ordered.push_back(all[pair].toDouble());
  MLIRContext *context = frequencies.getContext();
  Builder builder(context);
  double factor = frequencies.computeAttentionFactor().toDouble();
  return FrequenciesAttr::get(
      context, frequencies.getDim(), frequencies.getBase(),
      ExplicitScalingAttr::get(context, builder.getDenseF64ArrayAttr(ordered),
                               factor == 1 ? FloatAttr()
                                           : builder.getF64FloatAttr(factor)),
      frequencies.getPrecision());
}

Type ModelModule::getElementType() {
  switch (dtype) {
  case ::posenc::frontend::DType::F32:
    return builder.getF32Type();
  case ::posenc::frontend::DType::BF16:
    return builder.getBF16Type();
  case ::posenc::frontend::DType::F16:
    return builder.getF16Type();
  case ::posenc::frontend::DType::F64:
    return builder.getF64Type();
  }
  llvm_unreachable("unknown element type");
}

/// Returns a tensor type; its element type is the model's unless given.
RankedTensorType ModelModule::getType(ArrayRef<int64_t> shape,
                                      Type elementType) {
  return RankedTensorType::get(shape,
                               elementType ? elementType : getElementType());
}

func::FuncOp ModelModule::createFunction(StringRef family, StringRef suffix,
                                         StringRef doc,
                                         ArrayRef<NamedType> arguments,
                                         ArrayRef<NamedType> results) {
  auto types = [](ArrayRef<NamedType> list) {
    return llvm::map_to_vector(
        list, [](const NamedType &named) { return named.type; });
  };
  auto function = func::FuncOp::create(
      builder, loc, (family + config.suffix + suffix).str(),
      builder.getFunctionType(types(arguments), types(results)));
  function->setAttr(PosencDialect::kDocAttrName, builder.getStringAttr(doc));
  if (ArrayRef<int64_t> layers = findLayers(suffix); !layers.empty())
    function->setAttr(PosencDialect::kLayersAttrName,
                      builder.getDenseI64ArrayAttr(layers));
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    function.setArgAttr(number, PosencDialect::kNameAttrName,
                        builder.getStringAttr(argument.name));
    if (!argument.sizes.empty())
      function.setArgAttr(number, PosencDialect::kSizesAttrName,
                          builder.getStrArrayAttr(argument.sizes));
  }
  for (auto [number, result] : llvm::enumerate(results))
    function.setResultAttr(number, PosencDialect::kNameAttrName,
                           builder.getStringAttr(result.name));
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

SmallVector<Value> ModelModule::createSizes(Value tensor, int64_t count) {
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < count; ++dim) {
    Value index = arith::ConstantIndexOp::create(builder, loc, dim);
    sizes.push_back(tensor::DimOp::create(builder, loc, tensor, index));
  }
  return sizes;
}

Value ModelModule::createDestination(RankedTensorType type, ValueRange sizes) {
  return tensor::EmptyOp::create(builder, loc, type, sizes);
}

void ModelModule::buildSincos(FrequenciesAttr frequencies,
                              const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  RankedTensorType positionsType = getPositionsType({kDynamic});
  // Tables are f32 for every model, because rotations multiply in f32.
  RankedTensorType tableType =
      getType({kDynamic, frequencies.getNumPairs()}, builder.getF32Type());
  SmallVector<NamedType> arguments{{"positions", positionsType, {"tokens"}}};
  addRopeLength(arguments, frequencies);
  func::FuncOp function =
      createFunction("sincos", suffix,
                     describeSincos(frequencies, suffix) +
                         describeLength(frequencies, "positions"),
                     arguments, {{"cos", tableType}, {"sin", tableType}});
  Value positions = function.getArgument(0);
  // The tokens are the last dimension, after the axes.
  Value tokens = tensor::DimOp::create(builder, loc, positions,
                                       positionsType.getRank() - 1);
  SmallVector<Value> inits{createDestination(tableType, tokens),
                           createDestination(tableType, tokens)};
  SmallVector<Value, 2> turns = createTurns(function, frequencies, "positions");
  auto op = SincosOp::create(builder, loc, TypeRange{tableType, tableType},
                             positions, turns, inits, frequencies, getAxes());
  func::ReturnOp::create(builder, loc, op.getResults());
}

void ModelModule::buildRope(FrequenciesAttr frequencies,
                            const std::string &suffix) {
  OpBuilder::InsertionGuard guard(builder);
  // batch x tokens x heads x dim
  auto heads = [&](int64_t count) {
    return getType({kDynamic, kDynamic, count, config.headDim});
  };
  RankedTensorType queries = heads(config.numHeads);
  RankedTensorType keys = heads(config.numKeyValueHeads);
  RankedTensorType positionsType = getPositionsType({kDynamic, kDynamic});
  SmallVector<NamedType> arguments{{"q", queries, {"batch", "tokens"}},
                                   {"k", keys},
                                   {"positions", positionsType}};
  addRopeLength(arguments, frequencies);
  func::FuncOp function =
      createFunction("rope", suffix,
                     describeRope(frequencies, suffix) +
                         describeLength(frequencies, "positions"),
                     arguments, {{"q_out", queries}, {"k_out", keys}});
  SmallVector<Value> inputs{function.getArgument(0), function.getArgument(1)};
  // Queries, keys and positions have the same batch and number of tokens.
  SmallVector<Value> sizes = createSizes(inputs.front(), 2);
  SmallVector<Value> inits{createDestination(queries, sizes),
                           createDestination(keys, sizes)};
  Pairing pairing = config.interleaved ? Pairing::Interleaved : Pairing::Half;
  SmallVector<Value, 2> turns = createTurns(function, frequencies, "positions");
  auto op = RopeOp::create(builder, loc, TypeRange{queries, keys}, inputs,
                           function.getArgument(2), turns, inits, pairing,
                           frequencies, getAxes(), /*scale=*/nullptr,
                           ArrayRef<int64_t>{0, 1}, config.rotaryOffset,
                           /*inverse=*/false);
  func::ReturnOp::create(builder, loc, op.getResults());
}

FrequenciesAttr ModelModule::getFrequencies(int64_t rotaryDim, double theta,
                                            FrequencyScalingInterface scaling) {
  auto emitError = [&] { return mlir::emitError(loc); };
  if (scaling && options.precision != Precision::Exact &&
      scaling.dependsOnLength()) {
    emitError() << "--precision=hf_f32 needs the length of the sequences, on "
                   "which the frequencies depend: pass --rope-length=N";
    return {};
  }
  // The verifier of the attribute bounds the rotary dimension.
  auto result = FrequenciesAttr::getChecked(
      emitError, builder.getContext(), rotaryDim, real(theta),
      Attribute(scaling), options.precision);
  bool alternates =
      config.axes && config.axes->layout ==
                         ::posenc::frontend::PositionAxes::Layout::Alternating;
  if (!result || !alternates)
    return result;
  if (result.dependsOnLength()) {
    emitError() << "the frequencies of pairs that alternate between position "
                   "axes cannot depend on the length of the sequence: pass "
                   "--rope-length=N";
    return {};
  }
  return alternate(result);
}

OwningOpRef<ModuleOp> ModelModule::build() {
  if (!config.sets.empty())
    return buildSets();
  bool hasRotation = options.rotates && config.hasRotation();
  if (hasRotation) {
    frequencies =
        getFrequencies(config.rotaryDim, config.ropeTheta, config.scaling);
    if (!frequencies)
      return nullptr;
  }
  if (failed(checkAttention()))
    return nullptr;
  ArrayRef<::posenc::frontend::LayerRotation> rotations;
  if (options.rotates)
    rotations = config.rotations;
  for (const ::posenc::frontend::LayerRotation &rotation : rotations) {
    FrequenciesAttr ofLayer =
        getFrequencies(rotation.rotaryDim, rotation.theta, rotation.scaling);
    if (!ofLayer)
      return nullptr;
    layerFrequencies[rotation.type] = ofLayer;
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToStart(module->getBody());
  auto buildRotation = [&](FrequenciesAttr frequencies,
                           const std::string &suffix) {
    buildSincos(frequencies, suffix);
    buildRope(frequencies, suffix);
  };
  for (const ::posenc::frontend::LayerRotation &rotation : rotations)
    buildRotation(layerFrequencies[rotation.type], "_" + rotation.type);
  // If all layers rotate alike, each layer type also gets functions with its
  // own suffix, so callers can look them up by type.
  if (rotations.empty() && hasRotation) {
    buildRotation(frequencies, "");
    for (const std::string &type : config.layerTypes)
      buildRotation(frequencies, "_" + type);
  }
  buildAttentionFunctions();
  return module;
}

OwningOpRef<ModuleOp>
mlir::posenc::buildModule(MLIRContext &context, const ModelConfig &config,
                          const ModuleBuilderOptions &options) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect, PosencDialect,
                      tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = ModelModule(context, config, options).build();
  if (module && !options.rotates && module->getBody()->empty()) {
    emitError(module->getLoc())
        << "--rotation=none leaves no functions: the attention of this model "
           "is not supported";
    return nullptr;
  }
  return module;
}
