//===- ScalarProgram.cpp - a region of scalars, to be run often -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarProgram.h"

#include "ScalarFunctions.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Reference/Bias.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;

static unsigned getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// A number of the oracle, which keeps a bit as any number but 0.
static Scalar load(Type type, long double element) {
  if (isa<FloatType>(type))
    return Scalar::of(double(element));
  return Scalar::of(type.isInteger(1) ? -int64_t(element != 0)
                                      : int64_t(element));
}

unsigned ScalarProgram::define(Value value, Scalar scalar) {
  auto [entry, isNew] = registers.try_emplace(value, initial.size());
  if (isNew)
    initial.push_back(scalar);
  return entry->second;
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

/// What becomes of a float result: the value, or that of a type of 16 bits.
static double roundResult(Type type, double value) {
  if (!type.isF16() && !type.isBF16())
    return value;
  return double(reference::roundTo(*getReferenceType(type), value));
}

bool ScalarProgram::addReals(Operation *op) {
  RealFunction compute = findRealFunction(op->getName().getStringRef());
  if (!compute || op->getNumOperands() > kMaxScalarOperands)
    return false;
  SmallVector<unsigned> from;
  for (Value operand : op->getOperands())
    from.push_back(get(operand));
  Type type = op->getResult(0).getType();
  unsigned to = define(op->getResult(0));
  steps.push_back([=](Scalar *registers) {
    double operands[kMaxScalarOperands];
    for (auto [i, number] : llvm::enumerate(from))
      operands[i] = registers[number].real;
    registers[to].real = roundResult(type, compute(operands));
  });
  return true;
}

bool ScalarProgram::addIntegers(Operation *op) {
  IntegerFunction compute = findIntegerFunction(op->getName().getStringRef());
  if (!compute || op->getNumOperands() > kMaxScalarOperands)
    return false;
  SmallVector<unsigned> from;
  for (Value operand : op->getOperands())
    from.push_back(get(operand));
  unsigned width = getWidth(op->getOperand(0).getType());
  unsigned resultWidth = getWidth(op->getResult(0).getType());
  unsigned to = define(op->getResult(0));
  int number =
      addFault(op, "divides by zero, or has a quotient that does not fit");
  steps.push_back([=](Scalar *registers) {
    int64_t operands[kMaxScalarOperands];
    for (auto [i, number] : llvm::enumerate(from))
      operands[i] = registers[number].integer;
    std::optional<int64_t> result = compute(operands, width);
    if (!result)
      fail(number);
    registers[to].integer = llvm::SignExtend64(result.value_or(0), resultWidth);
  });
  return true;
}

/// Operations whose operands and result are of several kinds.
bool ScalarProgram::addConversion(Operation *op) {
  // Reads all operands before it writes.
  auto push = [&](auto compute) {
    SmallVector<unsigned> from;
    for (Value operand : op->getOperands())
      from.push_back(get(operand));
    unsigned to = define(op->getResult(0));
    steps.push_back([=](Scalar *registers) {
      Scalar operands[kMaxScalarOperands];
      for (auto [i, number] : llvm::enumerate(from))
        operands[i] = registers[number];
      registers[to] = compute(operands);
    });
    return true;
  };
  Type type = op->getResult(0).getType();
  unsigned width =
      op->getNumOperands() && op->getOperand(0).getType().isIntOrIndex()
          ? getWidth(op->getOperand(0).getType())
          : 64;
  if (isa<arith::SIToFPOp>(op))
    return push([=](Scalar *list) {
      return Scalar::of(roundResult(type, double(list[0].integer)));
    });
  if (isa<arith::UIToFPOp>(op))
    return push([=](Scalar *list) {
      return Scalar::of(
          roundResult(type, double(zeroExtend(list[0].integer, width))));
    });
  if (isa<arith::SelectOp>(op))
    return push(
        [](Scalar *list) { return list[0].integer ? list[1] : list[2]; });
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return push([=, predicate = compare.getPredicate()](Scalar *list) {
      APInt a(width, list[0].integer, /*isSigned=*/true),
          b(width, list[1].integer, /*isSigned=*/true);
      return Scalar::of(-int64_t(arith::applyCmpPredicate(predicate, a, b)));
    });
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return push([predicate = compare.getPredicate()](Scalar *list) {
      return Scalar::of(-int64_t(arith::applyCmpPredicate(
          predicate, APFloat(list[0].real), APFloat(list[1].real))));
    });
  if (ClassFunction test = findClassFunction(op->getName().getStringRef()))
    return push(
        [=](Scalar *list) { return Scalar::of(-int64_t(test(list[0].real))); });
  if (op->getName().getStringRef() == "math.fpowi")
    return push([=](Scalar *list) {
      return Scalar::of(
          roundResult(type, std::pow(list[0].real, double(list[1].integer))));
    });
  bool isUnsigned = isa<arith::FPToUIOp>(op);
  if (!isUnsigned && !isa<arith::FPToSIOp>(op))
    return false;
  unsigned resultWidth = getWidth(type);
  return push([=](Scalar *list) {
    double value = std::trunc(list[0].real);
    double end = std::ldexp(1.0, resultWidth - (isUnsigned ? 0 : 1));
    // Any number will do: nobody may depend on it.
    if (!(value >= (isUnsigned ? 0 : -end) && value < end))
      return Scalar::of(int64_t(0));
    uint64_t bits = isUnsigned ? uint64_t(value) : uint64_t(int64_t(value));
    return Scalar::of(llvm::SignExtend64(bits, resultWidth));
  });
}

/// Finds the operand tensor's element.
LogicalResult ScalarProgram::addExtract(Operation *op, Evaluator &values) {
  auto extract = cast<tensor::ExtractOp>(op);
  const ReferenceValue &source = values.get(extract.getTensor());
  if (!source.initialized)
    return op->emitError("reads a tensor that nothing was written to");
  if (source.isAttention)
    return op->emitError("the reference cannot measure what is computed from "
                         "an attention's result");
  SmallVector<unsigned> from;
  for (Value index : extract.getIndices())
    from.push_back(get(index));
  Type type = extract.getType();
  unsigned to = define(extract.getResult());
  int number = addFault(op, "reads outside of the tensor");
  steps.push_back([=, array = &source.array](Scalar *registers) {
    int64_t position = 0;
    for (auto [dim, index] : llvm::enumerate(from)) {
      int64_t at = registers[index].integer, size = array->shape[dim];
      if (at < 0 || at >= size) {
        registers[to] = Scalar::of(int64_t(0));
        return fail(number);
      }
      position = position * size + at;
    }
    registers[to] = load(type, array->values[size_t(position)]);
  });
  return success();
}

void ScalarProgram::addBias(Operation *op) {
  unsigned to = define(op->getResult(0));
  if (auto alibi = dyn_cast<AlibiOp>(op)) {
    unsigned head = get(alibi.getHead()), query = get(alibi.getQuery()),
             key = get(alibi.getKey());
    int64_t heads = int64_t(alibi.getHeads());
    int number = addFault(op, "has no slope for the head");
    steps.push_back([=](Scalar *registers) {
      int64_t h = registers[head].integer;
      bool exists = h >= 0 && h < heads;
      if (!exists)
        fail(number);
      registers[to].real =
          exists ? reference::alibiBias(h, heads, registers[query].integer,
                                        registers[key].integer)
                 : 0;
    });
    return;
  }
  auto bucket = cast<T5BucketOp>(op);
  reference::T5Buckets spec;
  spec.buckets = int64_t(bucket.getBuckets());
  spec.maxDistance = int64_t(bucket.getMaxDistance());
  spec.bidirectional = bucket.getBidirectional();
  // Its logarithms take long, and every pair asks for the same few.
  std::vector<int64_t> table;
  const int64_t far = std::min<int64_t>(spec.maxDistance, 1 << 15);
  for (int64_t relative = -far; relative <= far; ++relative)
    table.push_back(reference::t5Bucket(relative, spec));
  unsigned from = get(bucket.getRelative());
  steps.push_back([=, table = std::move(table)](Scalar *registers) {
    int64_t relative = registers[from].integer;
    bool isNear = relative >= -far && relative <= far;
    registers[to].integer = isNear ? table[size_t(relative + far)]
                                   : reference::t5Bucket(relative, spec);
  });
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult ScalarProgram::addCapture(Value value, Evaluator &values) {
  if (registers.contains(value) || isa<ShapedType>(value.getType()))
    return success();
  const ReferenceValue &captured = values.get(value);
  define(value, load(value.getType(), captured.array.values.front()));
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
  if (isa<AlibiOp, T5BucketOp>(op)) {
    addBias(op);
    return success();
  }
  auto fits = [](Type type) {
    return type.isIndex() || type.isF64() || type.isF32() || type.isF16() ||
           type.isBF16() ||
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
  std::unique_ptr<ScalarProgram> program(new ScalarProgram);
  for (BlockArgument argument : region.getArguments())
    program->define(argument);
  Block &block = region.front();
  for (Operation &op : block.without_terminator())
    if (failed(program->add(&op, values)))
      return nullptr;
  Value result = cast<YieldOp>(block.getTerminator()).getValue();
  if (failed(program->addCapture(result, values)))
    return nullptr;
  program->yielded = program->get(result);
  return program;
}

Scalar ScalarProgram::run(ArrayRef<Scalar> arguments) const {
  SmallVector<Scalar, 32> file(initial.begin(), initial.end());
  llvm::copy(arguments, file.begin());
  for (const Step &step : steps)
    step(file.data());
  return file[yielded];
}

LogicalResult ScalarProgram::checkRuns() const {
  int number = fault.load();
  if (number < 0)
    return success();
  return faults[number].op->emitError(faults[number].message);
}
