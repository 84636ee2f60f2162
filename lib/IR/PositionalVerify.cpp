//===- PositionalVerify.cpp - shared checks of positional operations ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionalVerify.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

int64_t mlir::posenc::getNumPositionLoops(Type positions, AxesAttr axes) {
  auto type = dyn_cast<ShapedType>(positions);
  return type ? type.getRank() - (axes ? 1 : 0) : 1;
}

SmallVector<int64_t> mlir::posenc::getPositionSymbols(Type positions,
                                                      AxesAttr axes) {
  SmallVector<int64_t> symbols;
  if (auto type = dyn_cast<ShapedType>(positions))
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      symbols.push_back(axes ? dim - 1 : dim);
  return symbols;
}

SmallVector<int64_t> mlir::posenc::getTableSymbols(Type table) {
  auto type = cast<ShapedType>(table);
  SmallVector<int64_t> symbols =
      llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  if (!symbols.empty())
    symbols.back() = -1;
  return symbols;
}

SmallVector<int64_t> mlir::posenc::getRotatedSymbols(Type type,
                                                     ArrayRef<int64_t> dims,
                                                     int64_t index) {
  // Symbols do not collide: the verifier bounds the ranks to 64 and the number
  // of tensors.
  int64_t rank = cast<ShapedType>(type).getRank();
  SmallVector<int64_t> symbols;
  for (int64_t dim = 0; dim < rank; ++dim)
    symbols.push_back(1000 + index * 64 + dim);
  for (auto [loop, dim] : llvm::enumerate(dims))
    if (dim >= 0 && dim < rank)
      symbols[dim] = loop;
  return symbols;
}

bool mlir::posenc::haveCompatibleShapes(Type a, Type b) {
  return getElementTypeOrSelf(a) == getElementTypeOrSelf(b) &&
         succeeded(verifyCompatibleShape(a, b));
}

bool mlir::posenc::restartsOnAxes(FrequenciesAttr frequencies) {
  FrequencyScalingInterface rule = frequencies.getScalingRule();
  return !rule || !rule.isIndexedByPair();
}

LogicalResult mlir::posenc::verifyAxisFrequencies(
    function_ref<InFlightDiagnostic()> emitError, FrequenciesAttr frequencies,
    AxesAttr axes) {
  FrequencyScalingInterface rule = frequencies.getScalingRule();
  if (!axes || axes.getLayout() != AxisLayout::Axial || !rule ||
      !restartsOnAxes(frequencies))
    return success();
  double base = frequencies.getBase().getValueAsDouble();
  for (int64_t pairs : axes.getSections())
    if (failed(rule.verifyFor(emitError, 2 * pairs, base)))
      return failure();
  return success();
}

LogicalResult mlir::posenc::verifyAxes(Operation *op, Type positions,
                                       AxesAttr axes,
                                       FrequenciesAttr frequencies,
                                       StringRef constraint) {
  int64_t numPairs = frequencies.getNumPairs();
  if (!axes)
    return success();
  auto type = dyn_cast<ShapedType>(positions);
  if (!type || type.getRank() < 1 || type.getDimSize(0) != axes.getNumAxes())
    return op->emitOpError() << "expected positions with a first dimension of "
                             << axes.getNumAxes() << " axes, got " << positions
                             << " (" << constraint << ")";
  if (axes.getNumPairs() != numPairs)
    return op->emitOpError()
           << "sections add up to " << axes.getNumPairs() << " pairs of "
           << numPairs << " (" << constraint << ")";
  return verifyAxisFrequencies([&] { return op->emitOpError(); }, frequencies,
                               axes);
}

LogicalResult mlir::posenc::verifyTurns(Operation *op, OperandRange turns,
                                        FrequenciesAttr frequencies,
                                        ArrayRef<Value> positions,
                                        StringRef constraint) {
  if (turns.empty()) {
    if (!frequencies.dependsOnLength())
      return success();
    return op->emitOpError()
           << "expected turns, since the frequencies depend on the length ("
           << constraint << ")";
  }
  int64_t numPairs = frequencies.getNumPairs();
  bool areLists = llvm::all_of(turns, [&](Value list) {
    auto type = cast<ShapedType>(list.getType());
    return type.getRank() == 1 && type.getDimSize(0) == numPairs;
  });
  if (turns.size() != 2 || !areLists)
    return op->emitOpError() << "expected two lists of turns with " << numPairs
                             << " elements, got (" << turns.getTypes() << ") ("
                             << constraint << ")";
  if (frequencies.roundsAngles())
    return op->emitOpError() << "expected exact frequencies with turns, got "
                             << frequencies << " (" << constraint << ")";
  for (Value value : positions)
    if (value && isa<FloatType>(getElementTypeOrSelf(value.getType())))
      return op->emitOpError() << "expected positions that are integers, since "
                                  "the frequencies are "
                                  "computed at run time, got "
                               << value.getType() << " (" << constraint << ")";
  return success();
}

LogicalResult mlir::posenc::verifyRotation(
    Operation *op, OperandRange inputs, OperandRange inits,
    ArrayRef<int64_t> dims, int64_t numLoops, int64_t offset, int64_t rotaryDim,
    const RotationConstraints &constraints) {
  if (inputs.empty() || inputs.size() > 16 || inputs.size() != inits.size())
    return op->emitOpError() << "expected between 1 and 16 inputs and as many "
                                "destinations, got "
                             << inputs.size() << " and " << inits.size() << " ("
                             << constraints.operands << ")";
  Type elementType = getElementTypeOrSelf(inputs.front().getType());
  for (auto [input, init] : llvm::zip_equal(inputs, inits)) {
    auto type = cast<ShapedType>(input.getType());
    auto initType = cast<ShapedType>(init.getType());
    if (type.getElementType() != elementType ||
        initType.getElementType() != elementType ||
        failed(verifyCompatibleShape(type, initType)))
      return op->emitOpError()
             << "expected one element type, and the shape of each input for "
                "its destination, got "
             << type << " and " << initType << " (" << constraints.operands
             << ")";
    int64_t rank = type.getRank();
    for (ShapedType tensor : {type, initType})
      if (rank < 2 || rank > 64 || tensor.isDynamicDim(rank - 1))
        return op->emitOpError()
               << "expected a rank between 2 and 64 and a static last "
                  "dimension, got "
               << tensor << " (" << constraints.rank << ")";
    if (static_cast<int64_t>(dims.size()) != numLoops)
      return op->emitOpError()
             << "expected " << numLoops << " elements of dims, got "
             << dims.size() << " (" << constraints.dims << ")";
    SmallVector<bool> used(rank);
    for (int64_t dim : dims) {
      if (dim < 0 || dim >= rank - 1 || used[dim])
        return op->emitOpError()
               << "expected different dims in [0, " << rank - 1 << "), got "
               << dim << " (" << constraints.dims << ")";
      used[dim] = true;
    }
    int64_t size = type.getDimSize(rank - 1);
    if (offset < 0 || rotaryDim > size || offset > size - rotaryDim)
      return op->emitOpError()
             << "rotary window of " << rotaryDim << " lanes at offset "
             << offset << " is not within the last dimension of " << size
             << " (" << constraints.window << ")";
  }
  return success();
}
