//===- Products.cpp - MatMul and Gemm -------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums are in f32 for f16 and bf16, and rounded once.
//
//===----------------------------------------------------------------------===//

#include "Products.h"
#include "BlockCodes.h"
#include "Scalars.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

/// Multiplies matrices by the operation, and rounds the result.
template <typename Op>
static Tensor multiplyBy(NodeImporter &node, Tensor &left, Tensor &right,
                         ArrayRef<Size> shape) {
  Type element = left.element;
  Value init = createFilled(node, shape, getWideType(element), 0);
  Value operands[] = {node.getValue(left), node.getValue(right)};
  Value result = Op::create(node, node.getLoc(), operands, init)->getResult(0);
  Tensor product = createTensor(node, result, shape);
  return convertTensor(node, product, element);
}

/// Broadcasts all but the last two dimensions to `batch`.
static Tensor broadcastBatch(NodeImporter &node, Tensor &tensor,
                             ArrayRef<Size> batch) {
  SmallVector<Size> shape(batch);
  shape.append(tensor.shape.end() - 2, tensor.shape.end());
  if (ArrayRef<Size>(tensor.shape) == ArrayRef<Size>(shape))
    return tensor;
  return broadcast(node, tensor, shape);
}

/// Whether `right` is a constant batch, such as a matrix for each head, that is
/// the inner part of the batch of `left`.
static bool isInnerBatch(const Tensor &left, const Tensor &right) {
  if (!(right.constant || right.weights) || !right.isFloat())
    return false;
  ArrayRef<Size> outer = ArrayRef<Size>(left.shape).drop_back(2),
                 inner = ArrayRef<Size>(right.shape).drop_back(2);
  while (!inner.empty() && inner.front().isConstant(1))
    inner = inner.drop_front();
  return !inner.empty() && inner.size() < outer.size() &&
         inner == outer.take_back(inner.size());
}

/// Multiplies by such a batch: (outer, inner, rows, depth) by (inner, depth,
/// columns). No copies of the matrices are made for the outer dimensions.
static FailureOr<Tensor> multiplyInnerBatch(NodeImporter &node, Tensor left,
                                            Tensor right) {
  int64_t rank = left.getRank();
  Size rows = left.shape[rank - 2], depth = left.shape.back(),
       columns = right.shape.back();
  Size inner = getProduct(ArrayRef<Size>(right.shape).drop_back(2)), outer(1);
  int64_t numOuter = rank - 2;
  for (Size count(1); count != inner;)
    count = count * left.shape[--numOuter];
  outer = getProduct(ArrayRef<Size>(left.shape).take_front(numOuter));
  if (failed(assign(left, reshape(node, left, {outer, inner, rows, depth}))) ||
      failed(assign(right, reshape(node, right, {inner, depth, columns}))))
    return failure();
  Type element = left.element, wide = getWideType(element);
  SmallVector<Size> shape{outer, inner, rows, columns};
  Value init = createFilled(node, shape, wide, 0);
  constexpr unsigned kOuter = 0, kInner = 1, kRow = 2, kColumn = 3, kDepth = 4;
  auto getMap = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(5, dims, node.getContext());
  };
  AffineMap maps[] = {getMap({kOuter, kInner, kRow, kDepth}),
                      getMap({kInner, kDepth, kColumn}),
                      getMap({kOuter, kInner, kRow, kColumn})};
  SmallVector<utils::IteratorType> loops(5, utils::IteratorType::parallel);
  loops[kDepth] = utils::IteratorType::reduction;
  Value operands[] = {node.getValue(left), node.getValue(right)};
  auto product = linalg::GenericOp::create(
      node, node.getLoc(), init.getType(), operands, init, maps, loops,
      [&](OpBuilder &builder, Location loc, ValueRange args) {
        Scalars s(ImplicitLocOpBuilder(loc, builder), wide);
        Value sum =
            s.add(args[2], s.mul(s.convert(args[0]), s.convert(args[1])));
        linalg::YieldOp::create(builder, loc, sum);
      });
  Tensor result = createTensor(node, product.getResult(0), shape);
  return convertTensor(node, result, element);
}

/// Returns the codes of all matrices of a tensor, if a product can read them.
static std::optional<std::vector<BlockCodes>>
getMatrices(const Tensor &tensor) {
  if (!tensor.codes)
    return std::nullopt;
  std::vector<BlockCodes> matrices;
  for (const CodesOrigin &origin : *tensor.codes) {
    std::optional<BlockCodes> codes = getBlockCodes(origin);
    if (!codes)
      return std::nullopt;
    matrices.push_back(std::move(*codes));
  }
  return matrices;
}

/// Multiplies by a matrix of codes for each index of the inner part of the
/// batch, one after the other.
static FailureOr<Tensor> multiplyCodeBatch(NodeImporter &node, Tensor left,
                                           ArrayRef<Size> batch, size_t rank,
                                           ArrayRef<BlockCodes> matrices) {
  Size rows = left.shape[left.getRank() - 2], depth = left.shape.back();
  auto count = static_cast<int64_t>(matrices.size());
  Size outer = getProduct(batch.drop_back(rank));
  left = broadcastBatch(node, left, batch);
  if (failed(assign(left, reshape(node, left, {outer, count, rows, depth}))))
    return failure();
  std::vector<Tensor> products;
  for (auto [number, matrix] : llvm::enumerate(matrices)) {
    Tensor part = slice(node, left, {0, static_cast<int64_t>(number), 0, 0},
                        {outer, 1, rows, depth});
    if (failed(assign(part, reshape(node, part, {outer, rows, depth}))) ||
        failed(assign(part, multiplyCodes(node, part, matrix))))
      return failure();
    part = convertTensor(node, part, left.element);
    if (failed(assign(part,
                      reshape(node, part, {outer, 1, rows, matrix.columns}))))
      return failure();
    products.push_back(std::move(part));
  }
  SmallVector<Tensor *> parts =
      llvm::map_to_vector(products, [](Tensor &part) { return &part; });
  return concat(node, parts, 1);
}

FailureOr<Tensor> onnx::multiply(NodeImporter &node, Tensor left,
                                 Tensor right) {
  if (left.element != right.element || left.isBool())
    return node.emitError() << "expected numbers of one element type";
  if (left.shape.empty() || right.shape.empty())
    return node.emitError() << "expected at least one dimension";
  std::optional<std::vector<BlockCodes>> matrices;
  if (!left.element.isF64())
    matrices = getMatrices(right);
  if (matrices && right.getRank() == 2) {
    FailureOr<Tensor> product = multiplyCodes(node, left, matrices->front());
    if (succeeded(product))
      product = convertTensor(node, *product, left.element);
    return product;
  }
  // A vector is a row on the left and a column on the right.
  bool isRow = left.getRank() == 1, isColumn = right.getRank() == 1;
  if (isRow &&
      failed(assign(left, reshape(node, left, {Size(1), left.shape[0]}))))
    return failure();
  if (isColumn &&
      failed(assign(right, reshape(node, right, {right.shape[0], Size(1)}))))
    return failure();
  Size rows = left.shape[left.getRank() - 2], depth = left.shape.back();
  Size columns = right.shape.back();
  if (!requireEqual(node, depth, right.shape[right.getRank() - 2]))
    return node.emitError() << "the inputs differ in the size that is summed";
  Tensor leftBatch, rightBatch;
  leftBatch.shape.assign(left.shape.begin(), left.shape.end() - 2);
  rightBatch.shape.assign(right.shape.begin(), right.shape.end() - 2);
  FailureOr<SmallVector<Size>> batch =
      broadcastShapes(node, {&leftBatch, &rightBatch});
  if (failed(batch))
    return failure();
  Size inner = right.shape[right.getRank() - 2];
  bool isOne = llvm::all_of(
      rightBatch.shape, [](const Size &size) { return size.isConstant(1); });
  Tensor product;
  if (matrices && ArrayRef<Size>(*batch).take_back(rightBatch.shape.size()) ==
                      ArrayRef<Size>(rightBatch.shape)) {
    if (failed(assign(product,
                      multiplyCodeBatch(node, left, *batch,
                                        rightBatch.shape.size(), *matrices))))
      return failure();
  } else if (isOne) {
    // All rows are multiplied by one matrix.
    Size all = getProduct(leftBatch.shape) * rows;
    if (failed(assign(left, reshape(node, left, {all, depth}))) ||
        failed(assign(right, reshape(node, right, {inner, columns}))))
      return failure();
    if (right.hasTransposedWeights) {
      // The panels of a product are packed from a matrix in either order.
      Tensor rows = createWeights(right.weights);
      product = multiplyBy<linalg::MatmulTransposeBOp>(node, left, rows,
                                                       {all, columns});
    } else {
      product = multiplyBy<linalg::MatmulOp>(node, left, right, {all, columns});
    }
  } else if (isInnerBatch(left, right)) {
    if (failed(assign(product, multiplyInnerBatch(node, left, right))))
      return failure();
  } else {
    Size count = getProduct(*batch);
    left = broadcastBatch(node, left, *batch);
    right = broadcastBatch(node, right, *batch);
    if (failed(assign(left, reshape(node, left, {count, rows, depth}))) ||
        failed(assign(right, reshape(node, right, {count, inner, columns}))))
      return failure();
    product = multiplyBy<linalg::BatchMatmulOp>(node, left, right,
                                                {count, rows, columns});
  }
  SmallVector<Size> shape = *batch;
  if (!isRow)
    shape.push_back(rows);
  if (!isColumn)
    shape.push_back(columns);
  return reshape(node, product, shape);
}

static LogicalResult importMatMul(NodeImporter &node) {
  return node.setResult(multiply(node, node.getInput(0), node.getInput(1)));
}

/// alpha * A * B + beta * C, with A and B transposed or not.
static LogicalResult importGemm(NodeImporter &node) {
  Tensor left = node.getInput(0), right = node.getInput(1);
  double alpha = node.getFloat("alpha", 1), beta = node.getFloat("beta", 1);
  bool transposesLeft = node.getInt("transA", 0);
  bool transposesRight = node.getInt("transB", 0);
  if (left.getRank() != 2 || right.getRank() != 2)
    return node.emitError() << "expected matrices";
  if (!left.isFloat())
    return node.emitError() << "expected floats, found " << left.element;
  if (transposesLeft)
    left = transpose(node, left, {1, 0});
  if (transposesRight)
    right = transpose(node, right, {1, 0});
  FailureOr<Tensor> product = multiply(node, left, right);
  if (failed(product))
    return failure();
  bool hasSummand = node.hasInput(2);
  if (!hasSummand && alpha == 1)
    return node.setResult(std::move(*product));
  SmallVector<Tensor *> operands{&*product};
  if (hasSummand)
    operands.push_back(&node.getInput(2));
  return node.setResult(
      mapToFirst(node, operands, [&](Scalars &s, ValueRange args) {
        Value x = s.convert(args[0]);
        if (alpha != 1)
          x = s.mul(x, s.get(alpha));
        if (hasSummand) {
          Value y = s.convert(args[1]);
          x = s.add(x, beta == 1 ? y : s.mul(y, s.get(beta)));
        }
        return x;
      }));
}

/// Returns a tensor with its last two dimensions swapped; a vector is left
/// alone.
static Tensor swapMatrix(NodeImporter &node, Tensor &tensor) {
  int64_t rank = tensor.getRank();
  if (rank < 2)
    return tensor;
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[rank - 2], permutation[rank - 1]);
  return transpose(node, tensor, permutation);
}

/// Returns a tensor whose first dimension is moved behind those of the batch.
static Tensor moveRowsBehindBatch(NodeImporter &node, Tensor &tensor) {
  int64_t rank = tensor.getRank();
  if (rank < 3)
    return tensor;
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(1, rank - 1));
  permutation.append({0, rank - 1});
  return transpose(node, tensor, permutation);
}

/// alpha * A * B with batches, A and B transposed or not, which may be behind
/// their first dimension.
static LogicalResult importFusedMatMul(NodeImporter &node) {
  Tensor left = node.getInput(0), right = node.getInput(1);
  double alpha = node.getFloat("alpha", 1);
  if (!left.isFloat())
    return node.emitError() << "expected floats, found " << left.element;
  if (node.getInt("transBatchA", 0))
    left = moveRowsBehindBatch(node, left);
  if (node.getInt("transBatchB", 0))
    right = moveRowsBehindBatch(node, right);
  if (node.getInt("transA", 0))
    left = swapMatrix(node, left);
  if (node.getInt("transB", 0))
    right = swapMatrix(node, right);
  FailureOr<Tensor> product = multiply(node, left, right);
  if (failed(product) || alpha == 1)
    return node.setResult(std::move(product));
  return node.setResult(
      mapFloats(node, &*product, [&](Scalars &s, ValueRange args) {
        return s.mul(args[0], s.get(alpha));
      }));
}

void onnx::addProductOperators(OperatorTable &table) {
  table["MatMul"] = {2, 2, 1, importMatMul};
  table["Gemm"] = {2, 3, 1, importGemm};
  table["com.microsoft/FusedMatMul"] = {2, 2, 1, importFusedMatMul};
  setFirstOpsets(table, {{"Gemm", 7}});
}
