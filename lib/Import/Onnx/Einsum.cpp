//===- Einsum.cpp - sums of products by an equation -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands are multiplied from left to right, each time as a product of
// matrices or, where nothing is summed, element by element. Dimensions that
// only one operand has and the result has not are summed before.
//
//===----------------------------------------------------------------------===//

#include "Products.h"
#include "Scalars.h"

#include "llvm/ADT/StringExtras.h"

#include <map>
#include <vector>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

namespace {
/// The labels of dimensions: letters of the equation, or kEllipsis plus the
/// number of a dimension of the ellipsis, counted from its end.
using Labels = SmallVector<unsigned>;
constexpr unsigned kEllipsis = 256;
/// More operands would be multiplied in an order that takes long.
constexpr unsigned kMaxOperands = 16;

struct Equation {
  SmallVector<Labels> operands;
  Labels result;
};

/// A tensor and the labels of its dimensions.
struct Labeled {
  Tensor tensor;
  Labels labels;
};
} // namespace

/// Appends the labels of an ellipsis.
static void addEllipsis(Labels &labels, int64_t numDims) {
  for (int64_t number = numDims; number > 0; --number)
    labels.push_back(kEllipsis + number - 1);
}

/// Reads the labels of one operand, or of the result. `numEllipsisDims` returns
/// the number of dimensions of an ellipsis for the number of letters, or -1 if
/// that is not possible. Sets `hasEllipsis` if there is one.
static FailureOr<Labels>
parseLabels(NodeImporter &node, StringRef text, bool &hasEllipsis,
            function_ref<int64_t(int64_t numLetters)> getNumEllipsisDims) {
  size_t numEllipses = text.count("...");
  if (numEllipses > 1)
    return node.emitError() << "a term has two '...'";
  hasEllipsis = numEllipses;
  int64_t numLetters = text.size() - (hasEllipsis ? 3 : 0);
  Labels labels;
  while (!text.empty()) {
    if (text.consume_front("...")) {
      int64_t numDims = getNumEllipsisDims(numLetters);
      if (numDims < 0)
        return node.emitError()
               << "an operand has fewer dimensions than letters";
      addEllipsis(labels, numDims);
      continue;
    }
    if (!llvm::isAlpha(text.front()))
      return node.emitError()
             << "expected letters, commas, '...' and at most one '->'";
    labels.push_back(static_cast<unsigned char>(text.front()));
    text = text.drop_front();
  }
  return labels;
}

static FailureOr<Equation> parseEquation(NodeImporter &node, StringRef given) {
  std::string text;
  llvm::copy_if(given, std::back_inserter(text),
                [](char c) { return c != ' '; });
  size_t arrow = StringRef(text).find("->");
  StringRef left = StringRef(text).take_front(arrow);
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  size_t numOperands = node.node.inputs.size();
  if (terms.size() != numOperands)
    return node.emitError() << "the equation has " << terms.size()
                            << " operands instead of " << numOperands;
  for (size_t number = 0; number < numOperands; ++number)
    if (!node.hasInput(number))
      return node.emitError() << "input " << number << " is missing";
  Equation equation;
  int64_t numEllipsisDims = 0;
  std::map<unsigned, unsigned> counts;
  for (auto [number, term] : llvm::enumerate(terms)) {
    int64_t rank = node.getInput(number).getRank();
    bool hasEllipsis = false;
    FailureOr<Labels> labels =
        parseLabels(node, term, hasEllipsis,
                    [&](int64_t numLetters) { return rank - numLetters; });
    if (failed(labels))
      return failure();
    if (static_cast<int64_t>(labels->size()) != rank)
      return node.emitError()
             << "the equation has " << labels->size()
             << " dimensions for operand " << number << ", which has " << rank;
    for (unsigned label : *labels) {
      ++counts[label];
      if (label >= kEllipsis)
        numEllipsisDims =
            std::max<int64_t>(numEllipsisDims, label - kEllipsis + 1);
    }
    equation.operands.push_back(std::move(*labels));
  }
  if (arrow == std::string::npos) {
    // Letters that occur once, in alphabetical order.
    addEllipsis(equation.result, numEllipsisDims);
    for (auto [label, count] : counts)
      if (label < kEllipsis && count == 1)
        equation.result.push_back(label);
    return equation;
  }
  bool hasEllipsis = false;
  FailureOr<Labels> result =
      parseLabels(node, StringRef(text).drop_front(arrow + 2), hasEllipsis,
                  [&](int64_t) { return numEllipsisDims; });
  if (failed(result))
    return failure();
  if (!hasEllipsis && numEllipsisDims)
    return node.emitError() << "the result needs '...', as an operand has it";
  for (auto [number, label] : llvm::enumerate(*result)) {
    if (!counts.count(label))
      return node.emitError() << "no operand has dimension '"
                              << static_cast<char>(label) << "' of the result";
    if (llvm::is_contained(ArrayRef(*result).take_front(number), label))
      return node.emitError() << "the result has dimension '"
                              << static_cast<char>(label) << "' twice";
  }
  equation.result = std::move(*result);
  return equation;
}

/// Takes the elements with equal indices along dimensions with equal labels.
static LogicalResult takeDiagonals(NodeImporter &node, Labeled &x) {
  Labels labels;
  SmallVector<Size> shape;
  SmallVector<int64_t> places;
  for (auto [dim, label] : llvm::enumerate(x.labels)) {
    size_t place = llvm::find(labels, label) - labels.begin();
    places.push_back(place);
    if (place == labels.size()) {
      labels.push_back(label);
      shape.push_back(x.tensor.shape[dim]);
    } else if (!requireEqual(node, shape[place], x.tensor.shape[dim])) {
      return node.emitError() << "dimensions of an operand with one letter "
                                 "differ in size";
    }
  }
  if (labels.size() == x.labels.size())
    return success();
  Value source = node.getValue(x.tensor);
  x.tensor = mapElementsTo(
      node, {}, shape, x.tensor.element, [&](Scalars &s, ValueRange) -> Value {
        SmallVector<Value> indices;
        for (int64_t place : places)
          indices.push_back(linalg::IndexOp::create(s, place));
        return tensor::ExtractOp::create(s, source, indices);
      });
  x.labels = std::move(labels);
  return success();
}

/// Returns the sizes of the dimensions of all operands: a size of 1 is
/// broadcast.
static FailureOr<std::map<unsigned, Size>>
getSizes(NodeImporter &node, ArrayRef<Labeled> operands) {
  std::map<unsigned, Size> sizes;
  for (const Labeled &x : operands)
    for (auto [label, size] : llvm::zip_equal(x.labels, x.tensor.shape)) {
      Size &known = sizes.try_emplace(label, size).first->second;
      if (known.isConstant(1) ||
          (!known.getConstant() && size.getConstant() && !size.isConstant(1)))
        known = size;
    }
  for (const Labeled &x : operands)
    for (auto [label, size] : llvm::zip_equal(x.labels, x.tensor.shape))
      if (!size.isConstant(1) && !requireEqual(node, size, sizes.at(label)))
        return node.emitError()
               << "operands differ in the size of a dimension with one letter";
  return sizes;
}

/// Drops the dimensions that are broadcast, and gives the others their sizes.
static LogicalResult dropBroadcast(NodeImporter &node, Labeled &x,
                                   const std::map<unsigned, Size> &sizes) {
  Labels labels;
  SmallVector<Size> own, shape;
  for (auto [label, size] : llvm::zip_equal(x.labels, x.tensor.shape)) {
    if (size.isConstant(1) && !sizes.at(label).isConstant(1))
      continue;
    labels.push_back(label);
    own.push_back(size);
    shape.push_back(sizes.at(label));
  }
  x.labels = std::move(labels);
  if (failed(assign(x.tensor, reshape(node, x.tensor, own))))
    return failure();
  if (own != shape)
    x.tensor = createTensor(node, node.getValue(x.tensor), shape);
  return success();
}

/// Sums over the dimensions that are not needed.
static void sumOver(NodeImporter &node, Labeled &x,
                    function_ref<bool(unsigned)> isNeeded) {
  Labels labels;
  SmallVector<int64_t> axes;
  for (auto [dim, label] : llvm::enumerate(x.labels))
    if (isNeeded(label))
      labels.push_back(label);
    else
      axes.push_back(dim);
  if (!axes.empty())
    x.tensor = reduce(node, x.tensor, axes, Combiner::Add, x.tensor.element);
  x.labels = std::move(labels);
}

static void permute(NodeImporter &node, Labeled &x, const Labels &order) {
  if (x.labels == order)
    return;
  SmallVector<int64_t> permutation;
  for (unsigned label : order)
    permutation.push_back(llvm::find(x.labels, label) - x.labels.begin());
  x.tensor = transpose(node, x.tensor, permutation);
  x.labels = order;
}

/// Multiplies two operands, and sums over the dimensions of both that are not
/// needed.
static FailureOr<Labeled> multiplyPair(NodeImporter &node, Labeled left,
                                       Labeled right,
                                       function_ref<bool(unsigned)> isNeeded) {
  Labels batch, rows, columns, summed;
  for (unsigned label : left.labels) {
    bool isCommon = llvm::is_contained(right.labels, label);
    (!isCommon ? rows : isNeeded(label) ? batch : summed).push_back(label);
  }
  for (unsigned label : right.labels)
    if (!llvm::is_contained(left.labels, label))
      columns.push_back(label);
  auto join = [](std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels &part : parts)
      all.append(part);
    return all;
  };
  permute(node, left, join({batch, rows, summed}));
  permute(node, right, join({batch, summed, columns}));
  ArrayRef<Size> leftShape(left.tensor.shape), rightShape(right.tensor.shape);
  SmallVector<Size> outer(leftShape.take_front(batch.size()));
  SmallVector<Size> rowShape(leftShape.slice(batch.size(), rows.size()));
  SmallVector<Size> columnShape(rightShape.take_back(columns.size()));
  auto extend = [&](std::initializer_list<ArrayRef<Size>> parts) {
    SmallVector<Size> shape(outer);
    for (ArrayRef<Size> part : parts)
      shape.append(part.begin(), part.end());
    return shape;
  };
  Labeled result;
  result.labels = join({batch, rows, columns});
  if (result.labels.size() > kMaxRank)
    return node.emitError() << "a product of operands has more than "
                            << kMaxRank << " dimensions";
  if (summed.empty()) {
    SmallVector<Size> ones(rows.size(), Size(1));
    if (failed(assign(right.tensor, reshape(node, right.tensor,
                                            extend({ones, columnShape})))))
      return failure();
    ones.assign(columns.size(), Size(1));
    if (failed(assign(left.tensor,
                      reshape(node, left.tensor, extend({rowShape, ones})))))
      return failure();
    Tensor *factors[] = {&left.tensor, &right.tensor};
    if (failed(assign(result.tensor,
                      mapElements(node, factors, left.tensor.element,
                                  [](Scalars &s, ValueRange args) {
                                    return s.mul(s.convert(args[0]),
                                                 s.convert(args[1]));
                                  }))))
      return failure();
    return result;
  }
  Size depth = getProduct(leftShape.take_back(summed.size()));
  Size numRows = getProduct(rowShape), numColumns = getProduct(columnShape);
  if (failed(assign(left.tensor,
                    reshape(node, left.tensor, extend({{numRows, depth}})))) ||
      failed(assign(right.tensor, reshape(node, right.tensor,
                                          extend({{depth, numColumns}})))) ||
      failed(
          assign(result.tensor, multiply(node, left.tensor, right.tensor))) ||
      failed(assign(result.tensor, reshape(node, result.tensor,
                                           extend({rowShape, columnShape})))))
    return failure();
  return result;
}

static LogicalResult importEinsum(NodeImporter &node) {
  FailureOr<Equation> equation =
      parseEquation(node, node.getString("equation", ""));
  if (failed(equation))
    return failure();
  Type element = node.getInput(0).element;
  std::vector<Labeled> operands;
  for (auto [number, labels] : llvm::enumerate(equation->operands)) {
    Labeled x{node.getInput(number), labels};
    if (x.tensor.element != element || x.tensor.isBool())
      return node.emitError() << "expected numbers of one element type";
    if (failed(takeDiagonals(node, x)))
      return failure();
    operands.push_back(std::move(x));
  }
  FailureOr<std::map<unsigned, Size>> sizes = getSizes(node, operands);
  if (failed(sizes))
    return failure();
  auto isInResult = [&](unsigned label) {
    return llvm::is_contained(equation->result, label);
  };
  auto isIn = [](unsigned label) {
    return [label](const Labeled &x) {
      return llvm::is_contained(x.labels, label);
    };
  };
  for (Labeled &x : operands)
    if (failed(dropBroadcast(node, x, *sizes)))
      return failure();
  // One product rounds its result to the element type once. Other sums are of
  // wide numbers, which are rounded at the end.
  auto isNeeded = [&](unsigned label) {
    return isInResult(label) || llvm::count_if(operands, isIn(label)) > 1;
  };
  bool isProduct = operands.size() == 2 && llvm::all_of(operands, [&](auto &x) {
                     return llvm::all_of(x.labels, isNeeded);
                   });
  for (Labeled &x : operands) {
    if (!isProduct)
      x.tensor = convertTensor(node, x.tensor, getWideType(element));
    sumOver(node, x, isNeeded);
  }
  Labeled result = operands.front();
  for (size_t number = 1; number < operands.size(); ++number) {
    auto isNeededLater = [&](unsigned label) {
      return isInResult(label) ||
             llvm::any_of(ArrayRef(operands).drop_front(number + 1),
                          isIn(label));
    };
    FailureOr<Labeled> product =
        multiplyPair(node, result, operands[number], isNeededLater);
    if (failed(product))
      return failure();
    result = std::move(*product);
  }
  permute(node, result, equation->result);
  return node.setResult(convertTensor(node, result.tensor, element));
}

void onnx::addEinsumOperators(OperatorTable &table) {
  table["Einsum"] = {1, kMaxOperands, 1, importEinsum};
  setFirstOpsets(table, {{"Einsum", 12}});
}
