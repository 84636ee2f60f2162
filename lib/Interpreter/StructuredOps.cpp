//===- StructuredOps.cpp - reference evaluation of structured operations --===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Limits.h"
#include "StructuredSums.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::numElements;

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Runs the body for all indices of the loops, and stores or adds its results
/// to the outputs.
static LogicalResult runBody(linalg::LinalgOp op, ArrayRef<int64_t> ranges,
                             ArrayRef<ElementMap> maps,
                             ArrayRef<StructuredInput> inputs,
                             MutableArrayRef<StructuredOutput> outputs,
                             Evaluator &values) {
  SmallVector<Value> results;
  for (const StructuredOutput &output : outputs)
    llvm::append_range(results, output.factors);
  Region &region = *op.getBlock()->getParent();
  std::unique_ptr<ScalarProgram> program =
      ScalarProgram::create(region, results, values, /*rounds=*/false);
  if (!program)
    return failure();
  BoundedRun run(*program);
  SmallVector<unsigned> read;
  for (auto [number, argument] : llvm::enumerate(region.getArguments()))
    if (!argument.use_empty())
      read.push_back(unsigned(number));
  const unsigned numInputs = unsigned(inputs.size());
  auto visit = [&](ArrayRef<int64_t> indices, ArrayRef<int64_t> positions) {
    for (unsigned number : read)
      run.getArgument(number) =
          number < numInputs
              ? inputs[number].get(positions[number])
              : outputs[number - numInputs].elements[positions[number]];
    run.run(indices);
    unsigned next = 0;
    for (auto [number, output] : llvm::enumerate(outputs)) {
      int64_t position = positions[numInputs + number];
      BoundedScalar term = run.getResult(next++);
      if (output.isContraction())
        term = multiplyBounded(term, run.getResult(next++));
      if (output.isSum)
        output.sums[position].add(term, output.isNegative);
      else
        output.elements[position] = term;
    }
  };
  if (failed(forEachPoint(op, ranges, maps, visit)))
    return failure();
  return program->checkRuns();
}

/// Sets a result. Reports an error if no element has an error bound, since any
/// kernel would then pass.
static LogicalResult setResult(Value value, StructuredOutput &output,
                               const Shape &shape, Evaluator &values) {
  ReferenceValue result;
  result.type = *getReferenceType(output.type);
  result.array.shape = shape;
  std::vector<double> errors;
  for (auto [i, element] : llvm::enumerate(output.elements)) {
    if (output.isSum && output.numTerms > 0)
      element = finishSum(output, output.sums[i], element);
    result.array.values.push_back(isa<FloatType>(output.type)
                                      ? (long double)(element.value.real)
                                      : (long double)(element.value.integer));
    errors.push_back(element.error);
  }
  if (!errors.empty() &&
      llvm::all_of(errors, [](double error) { return error == HUGE_VAL; }))
    return value.getDefiningOp()->emitError(
        "the reference has no error bound for any element of the result");
  setElementErrors(result, errors);
  values.set(value, std::move(result));
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static LogicalResult checkOperands(linalg::LinalgOp op, Evaluator &values) {
  if (!op.hasPureTensorSemantics())
    return op.emitError("the reference supports only tensors, not memrefs");
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!getReferenceType(getElementTypeOrSelf(type)))
      return op.emitError() << "the reference does not support " << type;
    if (!op.getMatchingBlockArgument(&operand).use_empty() &&
        !values.getExact(operand.get()).initialized)
      return op.emitError("reads an uninitialized tensor");
  }
  for (auto [init, type] :
       llvm::zip_equal(op.getDpsInits(), op->getResultTypes()))
    if (failed(checkShape(op, values.getShape(init), type)))
      return failure();
  return success();
}

/// Moves elements and their errors unchanged, including those of attention
/// results.
static LogicalResult moveElements(linalg::LinalgOp op, unsigned number,
                                  unsigned from, ArrayRef<int64_t> ranges,
                                  Evaluator &values) {
  const ReferenceValue &source = values.getExact(op->getOperand(from));
  OpOperand *init = op.getDpsInitOperand(number);
  const Shape &shape = values.getShape(init->get());
  const auto &elements = source.array.values;
  ReferenceValue result = source;
  result.array.shape = shape;
  result.array.values.resize(size_t(numElements(shape)));
  if (!source.array.magnitude.empty())
    result.array.magnitude.resize(result.array.values.size());
  if (source.isAttention)
    result.largest.resize(result.array.values.size());
  ElementMap maps[] = {
      {op.getMatchingIndexingMap(&op->getOpOperand(from)), source.array.shape},
      {op.getMatchingIndexingMap(init), shape}};
  if (failed(forEachPoint(op, ranges, maps, [&](auto, auto positions) {
        int64_t to = positions[1], at = positions[0];
        result.array.values[to] = elements[at];
        if (!source.array.magnitude.empty())
          result.array.magnitude[to] = source.array.magnitude[at];
        if (source.isAttention)
          result.largest[to] = source.largest[at];
      })))
    return failure();
  values.set(op->getResult(number), std::move(result));
  return success();
}

std::optional<LogicalResult> mlir::posenc::evaluateMoves(Operation *operation,
                                                         Evaluator &values) {
  auto op = dyn_cast<linalg::LinalgOp>(operation);
  if (!op || op.getNumParallelLoops() != op.getNumLoops())
    return std::nullopt;
  SmallVector<unsigned> from;
  for (auto [number, yielded] :
       llvm::enumerate(op.getBlock()->getTerminator()->getOperands())) {
    auto argument = dyn_cast<BlockArgument>(yielded);
    OpOperand *init = op.getDpsInitOperand(int64_t(number));
    if (!argument || argument.getOwner() != op.getBlock() ||
        argument.getArgNumber() >= op.getNumDpsInputs() ||
        !op.getMatchingIndexingMap(init).isPermutation())
      return std::nullopt;
    from.push_back(argument.getArgNumber());
  }
  if (failed(checkOperands(op, values)))
    return failure();
  FailureOr<SmallVector<int64_t>> ranges = getLoopRanges(op, values);
  if (failed(ranges))
    return failure();
  for (auto [number, argument] : llvm::enumerate(from))
    if (failed(moveElements(op, unsigned(number), argument, *ranges, values)))
      return failure();
  return success();
}

std::optional<LogicalResult>
mlir::posenc::evaluateStructured(Operation *operation, Evaluator &values) {
  auto op = dyn_cast<linalg::LinalgOp>(operation);
  if (!op)
    return std::nullopt;
  if (failed(checkOperands(op, values)))
    return failure();
  FailureOr<SmallVector<int64_t>> ranges = getLoopRanges(op, values);
  if (failed(ranges))
    return failure();
  SmallVector<ElementMap> maps;
  for (OpOperand &operand : op->getOpOperands())
    maps.emplace_back(op.getMatchingIndexingMap(&operand),
                      values.getShape(operand.get()));
  std::vector<StructuredInput> inputs;
  for (Value operand : op.getDpsInputs())
    inputs.emplace_back(operand, values);
  std::vector<StructuredOutput> outputs;
  for (auto [number, value] : llvm::enumerate(op.getDpsInits())) {
    StructuredOutput &output = outputs.emplace_back();
    StructuredInput init(value, values);
    output.type = init.type;
    analyzeResult(op, unsigned(number), *ranges, output);
    size_t count = size_t(numElements(values.getShape(value)));
    // An element that is never written to has no error bound.
    BoundedScalar none{Scalar::of(0.0), HUGE_VAL};
    output.elements.assign(count, none);
    for (size_t i = 0; i < init.elements.size(); ++i)
      output.elements[i] = init.get(int64_t(i));
    if (output.isSum)
      output.sums.resize(count);
  }
  FailureOr<bool> isDone = false;
  if (outputs.size() == 1)
    isDone = addContraction(op, *ranges, maps, inputs, outputs.front());
  if (failed(isDone) ||
      (!*isDone && failed(runBody(op, *ranges, maps, inputs, outputs, values))))
    return failure();
  for (auto [result, output, init] :
       llvm::zip_equal(op->getResults(), outputs, op.getDpsInits()))
    if (failed(setResult(result, output, values.getShape(init), values)))
      return failure();
  return success();
}
