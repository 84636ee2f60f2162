//===- Moves.cpp - operators that move elements ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ops.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

static LogicalResult setReshaped(NodeImporter &node, ArrayRef<Size> shape) {
  return node.setResult(reshape(node, node.getInput(0), shape));
}

/// Returns the size for -1 in a new shape: the elements divided by the others.
static FailureOr<Size> inferSize(NodeImporter &node, ArrayRef<Size> shape,
                                 ArrayRef<Size> others) {
  SmallVector<Size> left(shape), right(others);
  // Equal sizes cancel, so that the rest divides exactly.
  llvm::erase_if(left, [&](const Size &size) {
    auto it = llvm::find(right, size);
    if (it == right.end())
      return false;
    right.erase(it);
    return true;
  });
  Size dividend = getProduct(left), divisor = getProduct(right);
  if (divisor.isConstant(0))
    return node.emitError() << "the size of -1 is undefined: another is 0";
  std::optional<int64_t> a = dividend.getConstant(), b = divisor.getConstant();
  if (a && b && *a % *b)
    return node.emitError()
           << "the number of elements is no multiple of the other sizes";
  return node.sizes.createTerm(SizeTable::Term::Quotient, dividend, divisor);
}

static LogicalResult importReshape(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  bool allowsZero = node.getInt("allowzero", 0);
  FailureOr<std::optional<SmallVector<Size>>> wanted =
      node.getSizes(1, "shape");
  if (failed(wanted))
    return failure();
  if (!*wanted)
    return node.emitError() << "the new shape is missing";
  SmallVector<Size> shape = **wanted;
  std::optional<size_t> inferred;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size.isConstant(0) && !allowsZero) {
      if (dim >= input.shape.size())
        return node.emitError() << "size 0 refers to a dimension " << dim
                                << ", which the input does not have";
      size = input.shape[dim];
    } else if (size.isConstant(-1)) {
      if (inferred)
        return node.emitError() << "the new shape has two sizes of -1";
      inferred = dim;
    } else if (size.getConstant() && *size.getConstant() < 0) {
      return node.emitError() << "size " << *size.getConstant()
                              << " of the new shape is negative";
    } else if (!size.getConstant() && !allowsZero && dim < input.shape.size() &&
               !node.sizes.isAtMost(1, size) &&
               !input.shape[dim].divideExactly(size)) {
      // If the size is 0 in a call, it is that of the input, which must be 0.
      Size isZero =
          node.sizes.createTerm(SizeTable::Term::IsEqual, size, Size(0));
      if (!requireEqual(node, input.shape[dim] * isZero, Size(0)))
        return node.emitError()
               << "size " << dim << " of the new shape is computed and 0";
    }
  }
  if (inferred) {
    SmallVector<Size> others(shape);
    others.erase(others.begin() + *inferred);
    FailureOr<Size> size = inferSize(node, input.shape, others);
    if (failed(size))
      return failure();
    shape[*inferred] = *size;
  }
  return setReshaped(node, shape);
}

static LogicalResult importFlatten(NodeImporter &node) {
  ArrayRef<Size> shape(node.getInput(0).shape);
  int64_t rank = shape.size(), axis = node.getInt("axis", 1);
  if (axis < -rank || axis > rank)
    return node.emitError()
           << "axis " << axis << " is out of range for rank " << rank;
  if (axis < 0)
    axis += rank;
  return setReshaped(node, {getProduct(shape.take_front(axis)),
                            getProduct(shape.drop_front(axis))});
}

/// Returns the axes of Squeeze and Unsqueeze; nullopt in it for none.
static FailureOr<std::optional<SmallVector<int64_t>>>
getAxes(NodeImporter &node, int64_t rank) {
  FailureOr<std::optional<SmallVector<int64_t>>> axes =
      node.getConstantInts(1, "axes");
  if (failed(axes) || !*axes)
    return axes;
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t &axis : **axes) {
    FailureOr<int64_t> valid = node.getAxis(axis, rank);
    if (failed(valid))
      return failure();
    axis = *valid;
    if (!seen.insert(axis).second)
      return node.emitError() << "axis " << axis << " is given twice";
  }
  return axes;
}

static LogicalResult importUnsqueeze(NodeImporter &node) {
  ArrayRef<Size> shape(node.getInput(0).shape);
  FailureOr<std::optional<SmallVector<int64_t>>> given =
      node.getConstantInts(1, "axes");
  if (failed(given))
    return failure();
  if (!*given)
    return node.emitError() << "the axes are missing";
  if ((*given)->size() > kMaxRank)
    return node.emitError()
           << "the result has more than " << kMaxRank << " dimensions";
  int64_t rank = shape.size() + (*given)->size();
  FailureOr<std::optional<SmallVector<int64_t>>> axes = getAxes(node, rank);
  if (failed(axes))
    return failure();
  SmallVector<Size> result;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (llvm::is_contained(**axes, dim)) {
      result.push_back(1);
    } else {
      result.push_back(shape.front());
      shape = shape.drop_front();
    }
  }
  return setReshaped(node, result);
}

static LogicalResult importSqueeze(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  FailureOr<std::optional<SmallVector<int64_t>>> axes =
      getAxes(node, input.getRank());
  if (failed(axes))
    return failure();
  SmallVector<Size> result;
  for (auto [dim, size] : llvm::enumerate(input.shape)) {
    if (!*axes && !size.getConstant() && mayBeEqual(node, size, 1))
      return node.emitError()
             << "without axes, the rank of the result depends on the size of "
                "dimension "
             << dim << ", which is dynamic";
    bool isDropped = *axes
                         ? llvm::is_contained(**axes, static_cast<int64_t>(dim))
                         : size.isConstant(1);
    if (!isDropped)
      result.push_back(size);
    else if (!requireEqual(node, size, 1))
      return node.emitError() << "dimension " << dim << " does not have size 1";
  }
  return setReshaped(node, result);
}

static LogicalResult importTranspose(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  int64_t rank = input.getRank();
  SmallVector<int64_t> permutation;
  if (std::optional<SmallVector<int64_t>> given = node.getInts("perm"))
    permutation = *given;
  else
    for (int64_t dim = rank; dim-- > 0;)
      permutation.push_back(dim);
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return node.emitError()
           << "'perm' is no permutation of " << rank << " dimensions";
  return node.setResult(transpose(node, input, permutation));
}

static LogicalResult importConcat(NodeImporter &node) {
  SmallVector<Tensor *> tensors;
  for (unsigned number = 0; number < node.node.inputs.size(); ++number) {
    if (!node.hasInput(number))
      return node.emitError() << "input " << number << " is missing";
    tensors.push_back(&node.getInput(number));
  }
  if (!node.getAttribute("axis") && node.getOpset() >= 4)
    return node.emitError() << "the axis is missing";
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", 1), tensors.front()->getRank());
  if (failed(axis))
    return failure();
  Type element = tensors.front()->element;
  auto isKnown = [&](Tensor *tensor) {
    return tensor->elements && tensor->getRank() == 1 &&
           tensor->element == element;
  };
  SmallVector<Size> elements;
  if (llvm::all_of(tensors, isKnown))
    for (Tensor *tensor : tensors)
      elements.append(*tensor->elements);
  if (!elements.empty() && elements.size() <= kMaxKnownElements)
    return node.setResult(createElements(element, elements, 1));
  return node.setResult(concat(node, tensors, *axis));
}

static LogicalResult importSplit(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  FailureOr<int64_t> axis =
      node.getAxis(node.getInt("axis", 0), input.getRank());
  if (failed(axis))
    return failure();
  FailureOr<std::optional<SmallVector<Size>>> given = node.getSizes(1, "split");
  if (failed(given))
    return failure();
  size_t count = node.node.outputs.size();
  int64_t declared = node.getInt("num_outputs", count);
  bool isEqual = !node.getAttribute("num_outputs");
  Size whole = input.shape[*axis];
  SmallVector<Size> parts;
  if (*given) {
    parts = **given;
  } else {
    if (declared <= 0 || declared != static_cast<int64_t>(count))
      return node.emitError() << "'num_outputs' is " << declared << ", but "
                              << count << " outputs are named";
    // All parts are equal, but the last may be smaller since opset 18.
    Size part = node.sizes.createTerm(SizeTable::Term::Quotient,
                                      isEqual ? whole : whole + (declared - 1),
                                      declared);
    parts.assign(count, part);
    if (!isEqual)
      parts.back() = whole - part * (declared - 1);
  }
  if (parts.size() != count)
    return node.emitError()
           << "expected sizes of " << count << " outputs, got " << parts.size();
  Size total(0);
  for (const Size &part : parts) {
    if (!requireAtMost(node, 0, part))
      return node.emitError() << "the size of an output is negative";
    total = total + part;
  }
  if (!total.isValid() || !requireEqual(node, total, whole))
    return node.emitError() << "the sizes of the outputs do not add up";
  SmallVector<Size> offsets(input.getRank(), Size(0)), sizes(input.shape);
  int64_t first = 0;
  for (auto [number, part] : llvm::enumerate(parts)) {
    sizes[*axis] = part;
    if (node.hasOutput(number)) {
      Tensor result = slice(node, input, offsets, sizes);
      if (input.elements && part.getConstant()) {
        ArrayRef<Size> all(*input.elements);
        if (first + *part.getConstant() <= static_cast<int64_t>(all.size()))
          result.elements =
              SmallVector<Size>(all.slice(first, *part.getConstant()));
      }
      node.setOutput(number, std::move(result));
    }
    first += part.getConstant().value_or(0);
    offsets[*axis] = offsets[*axis] + part;
  }
  return success();
}

static LogicalResult importExpand(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  FailureOr<std::optional<SmallVector<Size>>> given = node.getSizes(1, "");
  if (failed(given))
    return failure();
  if ((*given)->size() > kMaxRank)
    return node.emitError()
           << "the result has more than " << kMaxRank << " dimensions";
  SmallVector<Size> shape = **given;
  while (shape.size() < input.shape.size())
    shape.insert(shape.begin(), 1);
  size_t first = shape.size() - input.shape.size();
  for (auto [dim, size] : llvm::enumerate(input.shape)) {
    Size &to = shape[first + dim];
    // A size of the input stays where 1 is given.
    bool isKept = to.isConstant(1) ||
                  (size.getConstant() && !size.isConstant(1)) ||
                  (isAtMostOne(node, to) && !size.isConstant(1));
    if (isKept && !requireBroadcast(node, to, size))
      return node.emitError() << "dimension " << dim
                              << " of the input has another size, which is not "
                                 "expanded";
    if (isKept)
      to = size;
  }
  if (ArrayRef<Size>(shape) == ArrayRef<Size>(input.shape))
    return node.setResult(input);
  if (input.elements && input.elements->size() == 1 && shape.size() == 1 &&
      shape.front().getConstant() &&
      *shape.front().getConstant() <= kMaxKnownElements) {
    SmallVector<Size> elements(
        std::max<int64_t>(*shape.front().getConstant(), 0),
        input.elements->front());
    return node.setResult(createElements(input.element, elements, 1));
  }
  // Adding leading dimensions of size 1 moves nothing.
  bool isReshape =
      llvm::all_of(ArrayRef(shape).take_front(first),
                   [](const Size &size) { return size.isConstant(1); });
  if (isReshape &&
      ArrayRef(shape).drop_front(first) == ArrayRef<Size>(input.shape))
    return setReshaped(node, shape);
  return node.setResult(expand(node, input, shape));
}

static LogicalResult importTile(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  FailureOr<std::optional<SmallVector<Size>>> repeats = node.getSizes(1, "");
  if (failed(repeats))
    return failure();
  int64_t rank = input.getRank();
  if (static_cast<int64_t>((*repeats)->size()) != rank)
    return node.emitError() << "expected " << rank << " repeats";
  if (2 * rank > static_cast<int64_t>(kMaxRank))
    return node.emitError()
           << "more than " << kMaxRank / 2 << " dimensions are not supported";
  // Repeats along new dimensions, which the reshape merges.
  SmallVector<Size> narrow, wide, shape;
  for (auto [size, repeat] : llvm::zip_equal(input.shape, **repeats)) {
    if (!repeat.isConstant(1)) {
      narrow.push_back(1);
      wide.push_back(repeat);
    }
    narrow.push_back(size);
    wide.push_back(size);
    shape.push_back(repeat * size);
    if (!shape.back().isValid() ||
        (repeat.getConstant() && *repeat.getConstant() < 0))
      return node.emitError() << "a size of the result is negative or too "
                                 "large";
  }
  FailureOr<Tensor> spread = reshape(node, input, narrow);
  if (failed(spread))
    return failure();
  Tensor repeated = broadcast(node, *spread, wide);
  return node.setResult(reshape(node, repeated, shape));
}

void onnx::addMoveOperators(OperatorTable &table) {
  table["Reshape"] = {1, 2, 1, importReshape, CodeUse::Moved};
  table["Flatten"] = {1, 1, 1, importFlatten, CodeUse::Moved};
  table["Unsqueeze"] = {1, 2, 1, importUnsqueeze, CodeUse::Moved};
  table["Squeeze"] = {1, 2, 1, importSqueeze, CodeUse::Moved};
  table["Transpose"] = {1, 1, 1, importTranspose, CodeUse::Moved};
  table["Concat"] = {1, 1024, 1, importConcat, CodeUse::Joined};
  table["Split"] = {1, 2, 1024, importSplit, CodeUse::Moved};
  table["Expand"] = {2, 2, 1, importExpand, CodeUse::Moved};
  table["Tile"] = {2, 2, 1, importTile, CodeUse::Moved};
  setFirstOpsets(table, {{"Split", 2}, {"Tile", 6}, {"Expand", 8}});
}
