//===- ScalarProgram.cpp - compiled regions of scalar operations ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarProgram.h"

#include "Limits.h"
#include "ScalarFunctions.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Reference/Bias.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;

unsigned mlir::posenc::getScalarWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

Scalar mlir::posenc::loadScalar(Type type, long double element) {
  if (isa<FloatType>(type))
    return Scalar::of(double(element));
  return Scalar::of(type.isInteger(1) ? -int64_t(element != 0)
                                      : int64_t(element));
}

unsigned ScalarProgram::define(Value value, Scalar scalar, double error) {
  auto [it, isNew] = registers.try_emplace(value, initial.size());
  if (isNew) {
    initial.push_back(scalar);
    initialErrors.push_back(error);
  }
  return it->second;
}

int ScalarProgram::addFault(Operation *op, const char *message) {
  faults.push_back({op, message});
  return int(faults.size()) - 1;
}

void ScalarProgram::fail(int number) const {
  int none = -1;
  fault.compare_exchange_strong(none, number);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Rounds a float result if the program rounds and the type has at most 16
/// bits.
double ScalarProgram::round(Type type, double value) const {
  if (!rounds || type.getIntOrFloatBitWidth() > 16)
    return value;
  return double(reference::roundTo(*getReferenceType(type), value));
}

void ScalarProgram::push(Operation *op,
                         std::function<Scalar(const Scalar *)> compute) {
  ScalarStep step;
  step.op = op;
  for (Value operand : op->getOperands())
    if (!isa<ShapedType>(operand.getType())) {
      assert(registers.contains(operand) && "an operand was not added");
      step.from.push_back(registers.lookup(operand));
    }
  step.to = define(op->getResult(0));
  step.compute = std::move(compute);
  steps.push_back(std::move(step));
}

bool ScalarProgram::addReals(Operation *op) {
  RealFunction compute = findRealFunction(op->getName().getStringRef());
  unsigned count = op->getNumOperands();
  if (!compute || count > kMaxScalarOperands)
    return false;
  Type type = op->getResult(0).getType();
  push(op, [=](const Scalar *list) {
    double operands[kMaxScalarOperands];
    for (unsigned i = 0; i < count; ++i)
      operands[i] = list[i].real;
    return Scalar::of(round(type, compute(operands)));
  });
  return true;
}

bool ScalarProgram::addIntegers(Operation *op) {
  IntegerFunction compute = findIntegerFunction(op->getName().getStringRef());
  unsigned count = op->getNumOperands();
  if (!compute || count > kMaxScalarOperands)
    return false;
  unsigned width = getScalarWidth(op->getOperand(0).getType());
  unsigned resultWidth = getScalarWidth(op->getResult(0).getType());
  int number =
      addFault(op, "divides by zero, or has a quotient that does not fit");
  push(op, [=](const Scalar *list) {
    int64_t operands[kMaxScalarOperands];
    for (unsigned i = 0; i < count; ++i)
      operands[i] = list[i].integer;
    std::optional<int64_t> result = compute(operands, width);
    if (!result)
      fail(number);
    return Scalar::of(llvm::SignExtend64(result.value_or(0), resultWidth));
  });
  return true;
}

/// Adds an operation that mixes floats, integers and i1, if it is one.
bool ScalarProgram::addConversion(Operation *op) {
  auto push = [&](std::function<Scalar(const Scalar *)> compute) {
    this->push(op, std::move(compute));
    return true;
  };
  Type type = op->getResult(0).getType();
  unsigned width =
      op->getNumOperands() && op->getOperand(0).getType().isIntOrIndex()
          ? getScalarWidth(op->getOperand(0).getType())
          : 64;
  if (isa<arith::SIToFPOp>(op))
    return push([=](const Scalar *list) {
      return Scalar::of(round(type, double(list[0].integer)));
    });
  if (isa<arith::UIToFPOp>(op))
    return push([=](const Scalar *list) {
      return Scalar::of(
          round(type, double(zeroExtend(list[0].integer, width))));
    });
  if (isa<arith::SelectOp>(op))
    return push(
        [](const Scalar *list) { return list[0].integer ? list[1] : list[2]; });
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return push([=, predicate = compare.getPredicate()](const Scalar *list) {
      APInt a(width, list[0].integer, /*isSigned=*/true),
          b(width, list[1].integer, /*isSigned=*/true);
      return Scalar::of(-int64_t(arith::applyCmpPredicate(predicate, a, b)));
    });
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return push([predicate = compare.getPredicate()](const Scalar *list) {
      return Scalar::of(-int64_t(arith::applyCmpPredicate(
          predicate, APFloat(list[0].real), APFloat(list[1].real))));
    });
  if (ClassFunction test = findClassFunction(op->getName().getStringRef()))
    return push([=](const Scalar *list) {
      return Scalar::of(-int64_t(test(list[0].real)));
    });
  if (op->getName().getStringRef() == "math.fpowi")
    return push([=](const Scalar *list) {
      return Scalar::of(
          round(type, std::pow(list[0].real, double(list[1].integer))));
    });
  bool isUnsigned = isa<arith::FPToUIOp>(op);
  if (!isUnsigned && !isa<arith::FPToSIOp>(op))
    return false;
  unsigned resultWidth = getScalarWidth(type);
  return push([=](const Scalar *list) {
    double value = std::trunc(list[0].real);
    double end = std::ldexp(1.0, resultWidth - (isUnsigned ? 0 : 1));
    // The result is poison, so any number is allowed.
    if (!(value >= (isUnsigned ? 0 : -end) && value < end))
      return Scalar::of(int64_t(0));
    uint64_t bits = isUnsigned ? uint64_t(value) : uint64_t(int64_t(value));
    return Scalar::of(llvm::SignExtend64(bits, resultWidth));
  });
}

/// Adds a read of an element of a tensor.
LogicalResult ScalarProgram::addExtract(Operation *op, Evaluator &values) {
  auto extract = cast<tensor::ExtractOp>(op);
  const ReferenceValue &source = values.get(extract.getTensor());
  if (!source.initialized)
    return op->emitError("reads an uninitialized tensor");
  if (source.isAttention)
    return op->emitError("the reference has no error bound for values computed "
                         "from an attention result");
  const ReferenceValue &exact = values.getExact(extract.getTensor());
  Type type = extract.getType();
  int number = addFault(op, "reads outside of the tensor");
  // Returns nullopt if an index is out of bounds.
  auto getPosition =
      [array = &source.array](const Scalar *list) -> std::optional<size_t> {
    int64_t position = 0;
    for (auto [dim, size] : llvm::enumerate(array->shape)) {
      int64_t at = list[dim].integer;
      if (at < 0 || at >= size)
        return std::nullopt;
      position = position * size + at;
    }
    return size_t(position);
  };
  push(op, [=, array = &source.array](const Scalar *list) {
    std::optional<size_t> position = getPosition(list);
    if (position)
      return loadScalar(type, array->values[*position]);
    fail(number);
    return Scalar::of(int64_t(0));
  });
  steps.back().error = [=, exact = &exact](const Scalar *list) {
    std::optional<size_t> position = getPosition(list);
    return position ? getElementError(*exact, *position, /*isRounded=*/true)
                    : 0.0;
  };
  return success();
}

void ScalarProgram::addBias(Operation *op) {
  if (auto alibi = dyn_cast<AlibiOp>(op)) {
    int64_t heads = int64_t(alibi.getHeads());
    int number = addFault(op, "has no slope for the head");
    // The operands are the head, the query and the key.
    push(op, [=](const Scalar *list) {
      int64_t h = list[0].integer;
      if (h >= 0 && h < heads)
        return Scalar::of(
            reference::alibiBias(h, heads, list[1].integer, list[2].integer));
      fail(number);
      return Scalar::of(0.0);
    });
    return;
  }
  auto bucket = cast<T5BucketOp>(op);
  reference::T5Buckets spec;
  spec.buckets = int64_t(bucket.getBuckets());
  spec.maxDistance = int64_t(bucket.getMaxDistance());
  spec.bidirectional = bucket.getBidirectional();
  // Computes the buckets in advance: their logarithms are slow, and all pairs
  // of a query and a key need the same few.
  std::vector<int64_t> table;
  const int64_t far = std::min<int64_t>(spec.maxDistance, 1 << 15);
  for (int64_t relative = -far; relative <= far; ++relative)
    table.push_back(reference::t5Bucket(relative, spec));
  push(op, [=, table = std::move(table)](const Scalar *list) {
    int64_t relative = list[0].integer;
    bool isNear = relative >= -far && relative <= far;
    return Scalar::of(isNear ? table[size_t(relative + far)]
                             : reference::t5Bucket(relative, spec));
  });
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult ScalarProgram::addCapture(Value value, Evaluator &values) {
  if (registers.contains(value) || isa<ShapedType>(value.getType()))
    return success();
  const ReferenceValue &captured = values.get(value);
  define(value, loadScalar(value.getType(), captured.array.values.front()),
         getElementError(values.getExact(value), 0, /*isRounded=*/true));
  return success();
}

LogicalResult ScalarProgram::add(Operation *op, Evaluator &values) {
  for (Value operand : op->getOperands())
    if (failed(addCapture(operand, values)))
      return failure();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
      define(constant, Scalar::of(real.getValueAsDouble()));
    else
      define(constant,
             Scalar::of(cast<IntegerAttr>(constant.getValue()).getInt()));
    return success();
  }
  if (isa<tensor::ExtractOp>(op))
    return addExtract(op, values);
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    indices.push_back({define(index), int64_t(index.getDim())});
    return success();
  }
  if (isa<AlibiOp, T5BucketOp>(op)) {
    addBias(op);
    return success();
  }
  auto fits = [](Type type) {
    return (isa<FloatType, IndexType>(type) && getReferenceType(type)) ||
           (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64);
  };
  if (op->getNumResults() == 1 && llvm::all_of(op->getOperandTypes(), fits) &&
      llvm::all_of(op->getResultTypes(), fits) &&
      (addReals(op) || addIntegers(op) || addConversion(op)))
    return success();
  return op->emitError() << "the reference does not evaluate '" << op->getName()
                         << "'";
}

std::unique_ptr<ScalarProgram> ScalarProgram::create(Region &region,
                                                     Evaluator &values) {
  Value result = cast<YieldOp>(region.front().getTerminator()).getValue();
  return create(region, result, values, /*rounds=*/true);
}

std::unique_ptr<ScalarProgram> ScalarProgram::create(Region &region,
                                                     ArrayRef<Value> results,
                                                     Evaluator &values,
                                                     bool rounds) {
  std::unique_ptr<ScalarProgram> program(new ScalarProgram(rounds));
  for (BlockArgument argument : region.getArguments())
    program->define(argument);
  for (Operation &op : region.front().without_terminator())
    if (failed(program->add(&op, values)))
      return nullptr;
  for (Value result : results) {
    if (failed(program->addCapture(result, values)))
      return nullptr;
    program->yielded.push_back(program->registers.lookup(result));
  }
  return program;
}

std::unique_ptr<ScalarProgram> ScalarProgram::create(Operation *op,
                                                     Evaluator &values) {
  std::unique_ptr<ScalarProgram> program(new ScalarProgram(/*rounds=*/false));
  if (failed(program->add(op, values)))
    return nullptr;
  program->yielded.push_back(program->registers.lookup(op->getResult(0)));
  return program;
}

Scalar ScalarProgram::run(ArrayRef<Scalar> arguments) const {
  assert(arguments.size() <= initial.size() && "more arguments than registers");
  SmallVector<Scalar, 32> file(initial.begin(), initial.end());
  llvm::copy(arguments, file.begin());
  SmallVector<Scalar, 8> operands;
  for (const ScalarStep &step : steps) {
    operands.clear();
    for (unsigned number : step.from)
      operands.push_back(file[number]);
    file[step.to] = step.compute(operands.data());
  }
  return file[yielded.front()];
}

LogicalResult ScalarProgram::checkRuns() const {
  int number = fault.load();
  if (number < 0)
    return success();
  return faults[number].op->emitError(faults[number].message);
}
