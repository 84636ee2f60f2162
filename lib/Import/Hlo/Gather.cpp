//===- Gather.cpp - gathers and scatters of StableHLO ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gather at known indices is a slice. Others read elements at indices that
// are clamped so that slices are inside, and a scatter is a loop over its
// updates.
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

namespace {
/// The dimension numbers of a gather, or of a scatter with the names of a
/// gather.
struct DimensionNumbers {
  SmallVector<int64_t> offsetDims, collapsed, startMap, operandBatching,
      startBatching;
  int64_t vectorDim = 0;

  bool isDropped(int64_t dim) const {
    return llvm::is_contained(collapsed, dim) ||
           llvm::is_contained(operandBatching, dim);
  }
};
} // namespace

/// Reads the numbers from the text of an attribute. `keys` are the names of the
/// five lists there, in the order of the fields.
static DimensionNumbers readNumbers(StringRef text,
                                    const std::array<StringRef, 5> &keys) {
  auto [offset, collapsed, startMap, operandBatching, startBatching] = keys;
  DimensionNumbers numbers;
  numbers.offsetDims = Converter::getListInText(text, offset);
  numbers.collapsed = Converter::getListInText(text, collapsed);
  numbers.startMap = Converter::getListInText(text, startMap);
  numbers.operandBatching = Converter::getListInText(text, operandBatching);
  numbers.startBatching = Converter::getListInText(text, startBatching);
  StringRef rest = text.split("index_vector_dim").second.ltrim(" =");
  if (rest.consumeInteger(10, numbers.vectorDim))
    numbers.vectorDim = 0;
  return numbers;
}

Value Converter::getStarts(unsigned number) {
  Value starts = getOperand(number);
  RankedTensorType type = getType(starts);
  if (!op->hasAttr(kUnsignedIndex) || !isa<IntegerType>(type.getElementType()))
    return starts;
  Shape shape = getShape(starts);
  if (type.getElementType().isInteger(64))
    // Others are larger than any tensor.
    starts = arith::MinUIOp::create(builder, starts,
                                    createSplatLike(starts, std::ldexp(1, 62)));
  else
    starts = apply<arith::ExtUIOp>(type.clone(builder.getI64Type()), starts);
  return withShape(starts, shape);
}

/// Whether the numbers are different dimensions of a tensor.
static bool areDims(ArrayRef<int64_t> dims, int64_t rank) {
  SmallVector<bool> isUsed(rank);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || isUsed[dim])
      return false;
    isUsed[dim] = true;
  }
  return true;
}

/// Checks the numbers for an operand, start indices, and the result of a gather
/// or the updates of a scatter, which have `rank` dimensions.
static bool isValid(const DimensionNumbers &numbers, RankedTensorType operand,
                    RankedTensorType starts, int64_t rank) {
  int64_t vectorDim = numbers.vectorDim;
  if (vectorDim < 0 || vectorDim > starts.getRank() ||
      !isa<IntegerType>(starts.getElementType()))
    return false;
  bool hasVector = vectorDim < starts.getRank();
  int64_t numIndices = hasVector ? starts.getDimSize(vectorDim) : 1;
  int64_t numBatch = starts.getRank() - hasVector;
  SmallVector<int64_t> dropped(numbers.collapsed);
  dropped.append(numbers.operandBatching);
  SmallVector<int64_t> mapped(numbers.startMap);
  mapped.append(numbers.operandBatching);
  return areDims(numbers.offsetDims, rank) &&
         areDims(dropped, operand.getRank()) &&
         areDims(mapped, operand.getRank()) &&
         areDims(numbers.startBatching, starts.getRank()) &&
         llvm::is_sorted(numbers.offsetDims) &&
         !llvm::is_contained(numbers.startBatching, vectorDim) &&
         numbers.startBatching.size() == numbers.operandBatching.size() &&
         int64_t(numbers.startMap.size()) == numIndices &&
         int64_t(numbers.offsetDims.size() + dropped.size()) ==
             operand.getRank() &&
         numBatch + int64_t(numbers.offsetDims.size()) == rank;
}

/// Returns a start index, for the batch dimensions, as an index. `component` is
/// its position in the vector of indices.
static Value getStart(ImplicitLocOpBuilder &b, const DimensionNumbers &numbers,
                      Value starts, ArrayRef<Value> batch, int64_t component) {
  SmallVector<Value> at(batch);
  if (numbers.vectorDim < cast<RankedTensorType>(starts.getType()).getRank())
    at.insert(at.begin() + numbers.vectorDim,
              arith::ConstantIndexOp::create(b, component));
  Value start = tensor::ExtractOp::create(b, starts, at);
  return arith::IndexCastOp::create(b, b.getIndexType(), start);
}

/// Returns the index of an operand's batching dimension.
static Value getBatching(const DimensionNumbers &numbers, int64_t dim,
                         ArrayRef<Value> batch) {
  const auto *it = llvm::find(numbers.operandBatching, dim);
  if (it == numbers.operandBatching.end())
    return {};
  int64_t at = numbers.startBatching[it - numbers.operandBatching.begin()];
  return batch[at - (at > numbers.vectorDim)];
}

Value Converter::createGather(ArrayRef<Size> sliceSizes) {
  auto attribute =
      dyn_cast_or_null<StringAttr>(getAttribute("dimension_numbers"));
  if (!attribute)
    return fail("lacks its dimension numbers");
  DimensionNumbers numbers =
      readNumbers(attribute.getValue(),
                  {"offset_dims", "collapsed_slice_dims", "start_index_map",
                   "operand_batching_dims", "start_indices_batching_dims"});
  Value operand = getOperand(0), starts = getStarts(1);
  RankedTensorType source = getType(operand), startType = getType(starts);
  int64_t rank = getResultType().getRank();
  if (int64_t(sliceSizes.size()) != source.getRank())
    return fail("has slice sizes of another rank than its operand");
  if (!isValid(numbers, source, startType, rank))
    return fail("has dimension numbers that do not fit its operands");
  Shape shape = getShape(operand);
  for (auto [dim, size] : llvm::enumerate(sliceSizes))
    if ((numbers.isDropped(dim) && !size.isConstant(1)) ||
        sizes.table.isNonNegative(size - shape[dim] - 1) ||
        (size.getConstant() && *size.getConstant() < 0))
      return fail("has slice sizes that do not fit its operand");
  // The result's sizes are those of the slices, and of the start indices.
  Shape startShape = getShape(starts), resultShape(rank, Size(0));
  Shape window, batchSizes;
  for (int64_t dim = 0; dim < source.getRank(); ++dim)
    if (!numbers.isDropped(dim))
      window.push_back(sliceSizes[dim]);
  for (int64_t dim = 0; dim < startType.getRank(); ++dim)
    if (dim != numbers.vectorDim)
      batchSizes.push_back(startShape[dim]);
  size_t nextWindow = 0, nextBatch = 0;
  for (int64_t dim = 0; dim < rank; ++dim)
    resultShape[dim] = llvm::is_contained(numbers.offsetDims, dim)
                           ? window[nextWindow++]
                           : batchSizes[nextBatch++];
  std::optional<Shape> known = sizes.getElements(starts);
  SmallVector<int64_t> strides(source.getRank(), 1);
  if (known && batchSizes.empty()) {
    Shape offsets(source.getRank(), Size(0));
    for (auto [component, dim] : llvm::enumerate(numbers.startMap)) {
      Size above =
          sizes.table.createTerm(SizeTable::Term::Max, (*known)[component], 0);
      offsets[dim] = sizes.table.createTerm(SizeTable::Term::Min, above,
                                            shape[dim] - sliceSizes[dim]);
    }
    Value sliced = sliceBy(operand, offsets, sliceSizes, strides);
    return reshape(sliced, resultShape);
  }
  // Indices with a constant step along one dimension.
  if (known && batchSizes.size() == 1 && known->size() > 1 &&
      numbers.startMap.size() == 1 && numbers.collapsed == numbers.startMap &&
      numbers.operandBatching.empty()) {
    int64_t dim = numbers.startMap[0];
    std::optional<int64_t> first = (*known)[0].getConstant(),
                           second = (*known)[1].getConstant(),
                           size = shape[dim].getConstant();
    bool isProgression =
        first && second && size && *second > *first && *first >= 0;
    Shape offsets(source.getRank(), Size(0)), counts(sliceSizes);
    for (size_t i = 0; isProgression && i < known->size(); ++i)
      isProgression =
          (*known)[i].isConstant(*first + int64_t(i) * (*second - *first)) &&
          *(*known)[i].getConstant() < *size;
    for (int64_t other = 0; other < source.getRank(); ++other)
      isProgression &= other == dim || sliceSizes[other] == shape[other];
    if (isProgression) {
      offsets[dim] = *first;
      counts[dim] = Size(known->size());
      strides[dim] = *second - *first;
      Value sliced = sliceBy(operand, offsets, counts, strides);
      SmallVector<int64_t> permutation;
      int64_t next = 0;
      for (int64_t at = 0; at < rank; ++at) {
        if (!llvm::is_contained(numbers.offsetDims, at)) {
          permutation.push_back(dim);
          continue;
        }
        permutation.push_back(next == dim ? next + 1 : next);
        next = permutation.back() + 1;
      }
      return llvm::is_sorted(permutation) ? sliced
                                          : transpose(sliced, permutation);
    }
  }
  SmallVector<Value> limits(source.getRank());
  for (int64_t dim : numbers.startMap)
    limits[dim] = getIndex(shape[dim] - sliceSizes[dim]);
  Value zero = arith::ConstantIndexOp::create(builder, 0);
  return gatherElements(
      operand, resultShape, [&](ImplicitLocOpBuilder &b, ValueRange loops) {
        SmallVector<Value> batch, offsets;
        for (auto [dim, index] : llvm::enumerate(loops))
          (llvm::is_contained(numbers.offsetDims, int64_t(dim)) ? offsets
                                                                : batch)
              .push_back(index);
        SmallVector<Value> at;
        unsigned nextOffset = 0;
        for (int64_t dim = 0; dim < source.getRank(); ++dim) {
          Value index = getBatching(numbers, dim, batch);
          if (!numbers.isDropped(dim))
            index = offsets[nextOffset++];
          auto *it = llvm::find(numbers.startMap, dim);
          if (it != numbers.startMap.end()) {
            Value start = getStart(b, numbers, starts, batch,
                                   it - numbers.startMap.begin());
            start = arith::MaxSIOp::create(b, start, zero);
            start = arith::MinSIOp::create(b, start, limits[dim]);
            index =
                index ? Value(arith::AddIOp::create(b, start, index)) : start;
          }
          at.push_back(index ? index : zero);
        }
        return at;
      });
}

Value Converter::createScatter() {
  auto attribute =
      dyn_cast_or_null<StringAttr>(getAttribute("scatter_dimension_numbers"));
  if (!attribute || op->getNumOperands() != 3 || op->getNumRegions() != 1)
    return fail("is supported for one tensor with dimension numbers only");
  DimensionNumbers numbers =
      readNumbers(attribute.getValue(),
                  {"update_window_dims", "inserted_window_dims",
                   "scatter_dims_to_operand_dims", "input_batching_dims",
                   "scatter_indices_batching_dims"});
  Value operand = getOperand(0), starts = getStarts(1), updates = getOperand(2);
  RankedTensorType source = getType(operand), updateType = getType(updates);
  Type element = source.getElementType();
  if (!isValid(numbers, source, getType(starts), updateType.getRank()) ||
      updateType.getElementType() != element)
    return fail("has dimension numbers that do not fit its operands");
  Shape shape = getShape(operand), updateShape = getShape(updates);
  // Sizes of a window, and of the updates' other dimensions.
  Shape window, windowInOperand(source.getRank(), Size(1)), batchSizes;
  size_t next = 0;
  for (int64_t dim = 0; dim < updateType.getRank(); ++dim)
    (llvm::is_contained(numbers.offsetDims, dim) ? window : batchSizes)
        .push_back(updateShape[dim]);
  for (int64_t dim = 0; dim < source.getRank(); ++dim) {
    if (!numbers.isDropped(dim))
      windowInOperand[dim] = window[next++];
    if (sizes.table.isNonNegative(windowInOperand[dim] - shape[dim] - 1))
      return fail("has windows that are larger than its operand");
  }
  RankedTensorType windowType = getTypeOf(window, element);
  SmallVector<OpFoldResult> one(source.getRank(), builder.getIndexAttr(1)),
      updateOne(updateType.getRank(), builder.getIndexAttr(1)),
      operandSizes = getMixed(windowInOperand), updateSizes = updateOne;
  for (auto [dim, size] : llvm::zip_equal(numbers.offsetDims, window))
    updateSizes[dim] = getMixed(size);
  SmallVector<Value> limits(source.getRank());
  for (int64_t dim : numbers.startMap)
    limits[dim] = getIndex(shape[dim] - windowInOperand[dim]);
  Value zero = arith::ConstantIndexOp::create(builder, 0),
        step = arith::ConstantIndexOp::create(builder, 1);
  SmallVector<Value> counts = llvm::map_to_vector(
      batchSizes, [&](const Size &s) { return getIndex(s); });
  bool isSupported = true;
  // Writes the window of one update.
  auto write = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> batch,
                   Value result) -> Value {
    SmallVector<OpFoldResult> offsets, updateOffsets;
    Value isInside;
    for (int64_t dim = 0; dim < source.getRank(); ++dim) {
      Value index = getBatching(numbers, dim, batch);
      auto *it = llvm::find(numbers.startMap, dim);
      if (it != numbers.startMap.end()) {
        Value start =
            getStart(b, numbers, starts, batch, it - numbers.startMap.begin());
        index = arith::MaxSIOp::create(b, start, zero);
        index = arith::MinSIOp::create(b, index, limits[dim]);
        // Windows that are not inside are not written.
        Value same =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, start);
        isInside =
            isInside ? Value(arith::AndIOp::create(b, isInside, same)) : same;
      }
      offsets.push_back(index ? OpFoldResult(index) : b.getIndexAttr(0));
    }
    size_t nextBatch = 0;
    for (int64_t dim = 0; dim < updateType.getRank(); ++dim)
      updateOffsets.push_back(llvm::is_contained(numbers.offsetDims, dim)
                                  ? OpFoldResult(b.getIndexAttr(0))
                                  : OpFoldResult(batch[nextBatch++]));
    Value old = tensor::ExtractSliceOp::create(b, windowType, result, offsets,
                                               operandSizes, one);
    Value update = tensor::ExtractSliceOp::create(
        b, windowType, updates, updateOffsets, updateSizes, updateOne);
    Value written = createGeneric(
        b, update, old, {}, {},
        [&](ImplicitLocOpBuilder &nested, ValueRange args) -> Value {
          FailureOr<SmallVector<Value>> combined = emitScalars(
              nested, op->getRegion(0), ValueRange{args[1], args[0]});
          isSupported = succeeded(combined) && combined->size() == 1;
          Value value = isSupported ? combined->front() : args[0];
          if (isInside)
            value = arith::SelectOp::create(nested, isInside, value, args[1]);
          return value;
        });
    return tensor::InsertSliceOp::create(b, written, result, offsets,
                                         operandSizes, one);
  };
  SmallVector<Value> batch;
  std::function<Value(ImplicitLocOpBuilder &, Value)> loop =
      [&](ImplicitLocOpBuilder &b, Value result) -> Value {
    if (batch.size() == counts.size())
      return write(b, batch, result);
    auto nest = scf::ForOp::create(
        b, zero, counts[batch.size()], step, result,
        [&](OpBuilder &nested, Location loc, Value index, ValueRange carried) {
          ImplicitLocOpBuilder inside(loc, nested);
          batch.push_back(index);
          Value written = loop(inside, carried[0]);
          batch.pop_back();
          scf::YieldOp::create(inside, written);
        });
    return nest.getResult(0);
  };
  Value result = loop(builder, operand);
  if (!isSupported)
    return fail("has a region that is not supported");
  return withShape(result, shape);
}
