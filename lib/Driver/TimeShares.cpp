//===- TimeShares.cpp - estimated shares of time --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TimeShares.h"
#include "SlowOperations.h"

#include "posenc/Driver/Diagnostics.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

static double getSize(int64_t size) {
  return double(ShapedType::isDynamic(size) ? kSampleSize : size);
}

static double countElements(Type type) {
  double elements = 1;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (int64_t size : tensor.getShape())
      elements *= getSize(size);
  return elements;
}

/// Returns the bytes of a tensor, and 0 for other values.
static double countBytes(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!tensor)
    return 0;
  Type element = tensor.getElementType();
  double width = element.isIndex()        ? 64
                 : element.isIntOrFloat() ? element.getIntOrFloatBitWidth()
                                          : 64;
  return countElements(tensor) * std::max(width, 8.0) / 8;
}

/// Whether the operation computes each element from those of its operands.
static bool isElementwise(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  return linalgOp ? linalgOp.getNumReductionLoops() == 0
                  : op && OpTrait::hasElementwiseMappableTraits(op);
}

/// Whether an operation is fused into its only user: its result is not stored.
static bool isFused(Value value) {
  if (!value.hasOneUse() || !isElementwise(value.getDefiningOp()))
    return false;
  Operation *user = *value.user_begin();
  return isa<linalg::LinalgOp>(user) || isElementwise(user);
}

/// Operations per element: functions of math are polynomials of about this
/// degree.
static double countScalars(Operation &op) {
  constexpr double perFunction = 10;
  StringRef dialect = op.getName().getDialectNamespace();
  bool isSimple =
      isa<math::AbsFOp, math::FmaOp, math::FloorOp, math::CeilOp, math::SqrtOp>(
          op);
  if (dialect == "math")
    return isSimple ? 1 : perFunction;
  return dialect == "arith" && !isa<arith::ConstantOp>(op) ? 1 : 0;
}

static double countOperations(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    // Two products for each pair of a query and a key, and an exponential.
    auto query = cast<RankedTensorType>(attention.getQuery().getType());
    auto key = cast<RankedTensorType>(attention.getKey().getType());
    bool isHeadMajor = attention.getKeyLayout() == HeadLayout::HeadMajor;
    double keys = kSampleSize;
    if (key.getRank() == 4)
      keys = getSize(key.getDimSize(isHeadMajor ? 2 : 1));
    double width = getSize(query.getShape().back());
    double operations = 2 * keys * countElements(query);
    operations += 2 * keys * countElements(op->getResult(0).getType());
    operations += 10 * keys * countElements(query) / std::max(width, 1.0);
    return attention.getCausal() ? operations / 2 : operations;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    double iterations = 1, scalars = 0;
    for (int64_t size : linalgOp.getStaticLoopRanges())
      iterations *= getSize(size);
    for (Operation &scalar : *linalgOp.getBlock())
      scalars += countScalars(scalar);
    return iterations * scalars;
  }
  double elements =
      op->getNumResults() ? countElements(op->getResult(0).getType()) : 0;
  if (OpTrait::hasElementwiseMappableTraits(op))
    return elements * countScalars(*op);
  if (isa<linalg::SoftmaxOp>(op))
    return 12 * elements;
  // Rotations and tables: a few products, or a sine and a cosine.
  return isa_and_present<PosencDialect>(op->getDialect()) ? 10 * elements : 0;
}

static double countTraffic(Operation *op) {
  double bytes = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    auto style = dyn_cast<DestinationStyleOpInterface>(op);
    // Destinations are written, not read.
    if (!(style && style.isDpsInit(&operand)) && !isFused(operand.get()))
      bytes += countBytes(operand.get());
  }
  for (Value result : op->getResults())
    if (!isFused(result))
      bytes += countBytes(result);
  return bytes;
}

/// Whether the operation computes or moves elements of tensors.
static bool takesTime(Operation *op) {
  if (isa<linalg::LinalgOp, linalg::SoftmaxOp, tensor::ConcatOp, tensor::PadOp>(
          op))
    return true;
  bool hasTensor =
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  return hasTensor && (isa_and_present<PosencDialect>(op->getDialect()) ||
                       (OpTrait::hasElementwiseMappableTraits(op) &&
                        !isa<arith::ConstantOp>(op)));
}

/// Returns the operator of an ONNX node, or the name of the operation, with
/// what a linalg.generic does.
static std::string getKind(Operation *op) {
  if (auto name = dyn_cast<NameLoc>(op->getLoc());
      name && !isa_and_present<PosencDialect>(op->getDialect()))
    return name.getName().getValue().split(' ').first.str();
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return op->getName().getStringRef().str();
  return generic.getNumReductionLoops() ? "linalg.generic that reduces"
                                        : "linalg.generic of elements";
}

std::vector<ReportTime> mlir::posenc::estimateTimes(ModuleOp module,
                                                    unsigned vectorBytes) {
  std::vector<ReportTime> times;
  for (auto function : module.getOps<FunctionOpInterface>())
    function->walk([&](Operation *op) {
      if (!takesTime(op) || op->getParentOfType<linalg::LinalgOp>())
        return;
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      bool isScalar = linalgOp && isScalarLoop(linalgOp);
      double perByte = isScalar ? 1 : vectorBytes / 4.0;
      double time = std::max(countTraffic(op), countOperations(op) / perByte);
      times.push_back({function.getName().str(), getKind(op),
                       describeLocation(op->getLoc()), isScalar, time});
    });
  return times;
}
