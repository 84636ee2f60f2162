//===- SoftmaxTest.cpp - the formulas of online softmax -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of scores go through steps, a merge of two states and the end, which are
// compared with softmax in f64: for exponents of base 2 and for functions of
// the math dialect.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "posenc/Numerics/Softmax.h"
#include "posenc/Registration/Registration.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>

using namespace mlir;
using namespace mlir::posenc;
using namespace ::posenc::test;
using ::posenc::runtime::Array;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace {
/// An error that is seeded in the formulas.
enum class Fault { None, StaleMax, UnscaledMerge, EndWithoutSink };

/// Compiles elementwise functions of lists of numbers.
class Functions {
public:
  using Body =
      llvm::function_ref<SmallVector<Value>(SoftmaxBuilder &, ValueRange)>;
  using Numbers = std::vector<double>;

  explicit Functions(bool isBase2, bool isF64 = false)
      : isBase2(isBase2), isF64(isF64) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(context.get()));
  }

  /// Adds a function of `numInputs` numbers with `numResults` results.
  void add(StringRef name, size_t numInputs, size_t numResults, Body body);
  /// Calls a function for each element of the inputs.
  std::vector<Numbers> call(const std::string &name,
                            const std::vector<Numbers> &inputs);
  /// Rounds a number to the type of the functions.
  double round(double x) const { return isF64 ? x : float(x); }
  /// The natural exponent of a score of 1.
  double getUnit() const { return isBase2 ? llvm::numbers::ln2 : 1; }

  const bool isBase2, isF64;

private:
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<Kernel> kernel;
};
} // namespace

void Functions::add(StringRef name, size_t numInputs, size_t numResults,
                    Body body) {
  ImplicitLocOpBuilder b(module->getLoc(), context.get());
  b.setInsertionPointToEnd(module->getBody());
  Type element = isF64 ? Type(b.getF64Type()) : b.getF32Type();
  auto type = RankedTensorType::get({ShapedType::kDynamic}, element);
  SmallVector<Type> inputs(numInputs, type), results(numResults, type);
  auto function =
      func::FuncOp::create(b, name, b.getFunctionType(inputs, results));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value size = tensor::DimOp::create(b, function.getArgument(0), 0);
  SmallVector<Value> inits(numResults,
                           tensor::EmptyOp::create(b, type, ValueRange(size)));
  SmallVector<AffineMap> maps(numInputs + numResults,
                              b.getMultiDimIdentityMap(1));
  auto generic = linalg::GenericOp::create(
      b, results, function.getArguments(), inits, maps,
      ArrayRef(utils::IteratorType::parallel),
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        ValueRange own = arguments.take_front(numInputs);
        std::unique_ptr<SoftmaxBuilder> softmax;
        if (isBase2)
          softmax = std::make_unique<Base2Softmax>(nested, loc, element);
        else
          softmax = std::make_unique<MathSoftmax>(nested, loc, element);
        linalg::YieldOp::create(nested, loc, body(*softmax, own));
      });
  func::ReturnOp::create(b, generic.getResults());
}

std::vector<Functions::Numbers>
Functions::call(const std::string &name, const std::vector<Numbers> &inputs) {
  if (!kernel)
    kernel = std::make_unique<Kernel>(std::move(module));
  posenc_dtype dtype = isF64 ? POSENC_F64 : POSENC_F32;
  std::vector<Array> arrays;
  std::vector<posenc_value> values;
  for (const Numbers &numbers : inputs) {
    std::string error;
    Array array;
    EXPECT_TRUE(Array::allocate(dtype, {int64_t(numbers.size())}, array, error))
        << error;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (isF64)
        array.dataAs<double>()[i] = numbers[i];
      else
        array.dataAs<float>()[i] = float(numbers[i]);
    arrays.push_back(std::move(array));
  }
  for (const Array &array : arrays)
    values.push_back(array.value());
  std::vector<Numbers> results;
  for (const Array &result : kernel->call(name, values)) {
    Numbers numbers;
    for (size_t i = 0; i < result.numElements(); ++i)
      numbers.push_back(isF64 ? result.dataAs<double>()[i]
                              : double(result.dataAs<float>()[i]));
    results.push_back(std::move(numbers));
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Functions of base 2
//===----------------------------------------------------------------------===//

TEST(Softmax, Exp2HasARelativeErrorOf2e7) {
  Functions functions(/*isBase2=*/true);
  functions.add("exp2", 1, 1, [](SoftmaxBuilder &b, ValueRange x) {
    return SmallVector<Value>{emitExp2(b, x[0])};
  });
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> uniform(-126, 127);
  Functions::Numbers inputs{0, 1, -1, 0.5, -0.5, 127, -126};
  for (int64_t i = 0; i < 100000; ++i)
    inputs.push_back(functions.round(uniform(generator)));
  size_t numFinite = inputs.size();
  inputs.insert(inputs.end(), {-127, -128, -1e30, -kInfinity, kNaN});
  Functions::Numbers powers = functions.call("exp2", {inputs}).front();
  for (size_t i = 0; i < numFinite; ++i)
    ASSERT_NEAR(powers[i] / std::exp2(inputs[i]), 1, 2e-7) << inputs[i];
  for (size_t i = numFinite; i + 1 < inputs.size(); ++i)
    EXPECT_EQ(powers[i], 0) << inputs[i];
  EXPECT_TRUE(std::isnan(powers.back()));
}

TEST(Softmax, LogHasAnErrorOf2e7) {
  Functions functions(/*isBase2=*/true);
  functions.add("log", 1, 1, [](SoftmaxBuilder &b, ValueRange x) {
    return SmallVector<Value>{emitLog(b, x[0])};
  });
  std::mt19937_64 generator(4);
  std::uniform_real_distribution<double> uniform(-126, 127);
  Functions::Numbers inputs{1, 2, 0.5, std::exp2(-126)};
  for (int64_t i = 0; i < 100000; ++i)
    inputs.push_back(functions.round(std::exp2(uniform(generator))));
  Functions::Numbers logs = functions.call("log", {inputs}).front();
  EXPECT_EQ(logs[0], 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    double log = std::log(inputs[i]);
    ASSERT_NEAR(logs[i], log, 2e-7 * std::max(1.0, std::fabs(log)))
        << inputs[i];
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static constexpr size_t kRows = 256, kTiles = 6, kTileKeys = 4;

namespace {
/// Rows of keys; `sinks` is empty if there are none.
struct Rows {
  /// By tile and key of the tile, then by row.
  std::vector<std::vector<Functions::Numbers>> scores, values;
  Functions::Numbers sinks;
};

/// A running max, a running sum and an accumulator for each row.
using State = std::vector<Functions::Numbers>;

/// The largest errors of all rows.
struct Errors {
  double output = 0, logSum = 0;
  /// Rows whose result is not a NaN where it has to be, or the reverse, and
  /// rows without keys with other bits than 0 and the sink.
  size_t numWrong = 0;
};
} // namespace

/// Draws rows. The first ones have no keys, no keys in the first or the last
/// tiles, a NaN score, and scores that rise or fall by large steps.
static Rows makeRows(const Functions &functions, bool hasSinks) {
  Rows rows;
  std::mt19937_64 generator(5);
  std::normal_distribution<double> normal;
  for (size_t tile = 0; tile < kTiles; ++tile) {
    rows.scores.emplace_back();
    rows.values.emplace_back();
    for (size_t key = 0; key < kTileKeys; ++key) {
      Functions::Numbers scores, values;
      for (size_t row = 0; row < kRows; ++row) {
        double score = 10 * normal(generator);
        double at = double(tile * kTileKeys + key);
        if (row < 8 || (row == 8 && tile < 2) || (row == 9 && tile >= 2) ||
            (row == 10 && key != 1))
          score = -kInfinity;
        else if (row == 11 && tile == 3 && key == 2)
          score = kNaN;
        else if (row == 12)
          score = 100 * at;
        else if (row == 13)
          score = -100 * at;
        scores.push_back(functions.round(score));
        values.push_back(functions.round(normal(generator)));
      }
      rows.scores.back().push_back(std::move(scores));
      rows.values.back().push_back(std::move(values));
    }
  }
  if (!hasSinks)
    return rows;
  const double known[] = {0.0, -0.0, 1.7, -3.25, 3.2e38, -3.2e38, -kInfinity};
  for (size_t row = 0; row < kRows; ++row)
    rows.sinks.push_back(functions.round(
        row < std::size(known) ? known[row] : 10 * normal(generator)));
  return rows;
}

static void addFormulas(Functions &functions, Fault fault, bool hasSinks,
                        bool isLazy) {
  // m, l, acc, scores, values -> m, l, acc
  functions.add(
      "step", 3 + 2 * kTileKeys, 3, [&](SoftmaxBuilder &b, ValueRange inputs) {
        Value before = inputs[0], max = before, sum, acc;
        ValueRange scores = inputs.slice(3, kTileKeys);
        for (Value score : scores)
          max = b.max(score, max);
        if (isLazy)
          max = emitLazyMax(b, before, max);
        SoftmaxStep step = emitStep(b, before, max);
        if (fault == Fault::StaleMax)
          step.base = emitBase(b, before);
        for (auto [score, value] :
             llvm::zip_equal(scores, inputs.take_back(kTileKeys))) {
          Value weight = emitExp(b, score, step.base.value);
          sum = sum ? b.add(sum, weight) : weight;
          acc = acc ? b.fma(weight, value, acc) : b.mul(weight, value);
        }
        return SmallVector<Value>{max, b.fma(inputs[1], step.factor, sum),
                                  b.fma(inputs[2], step.factor, acc)};
      });
  // Two states of m, l, acc -> m, l, acc
  functions.add("merge", 6, 3, [&](SoftmaxBuilder &b, ValueRange inputs) {
    SoftmaxMerge merge = emitMerge(b, {inputs[0], inputs[3]});
    if (fault == Fault::UnscaledMerge)
      merge.factors.assign(2, b.number(1));
    return SmallVector<Value>{
        merge.max, emitMergedSum(b, {inputs[1], inputs[4]}, merge.factors),
        emitMergedSum(b, {inputs[2], inputs[5]}, merge.factors)};
  });
  // m, l, acc, sink -> output, log-sum-exp
  functions.add("end", 4, 2, [&](SoftmaxBuilder &b, ValueRange inputs) {
    bool usesSink = hasSinks && fault != Fault::EndWithoutSink;
    return SmallVector<Value>{
        emitQuotient(b, inputs[2], inputs[1]),
        emitLogSum(b, {inputs[0], inputs[1]}, usesSink ? inputs[3] : Value())};
  });
  // An unused number -> m, l
  functions.add("empty", 1, 2, [&](SoftmaxBuilder &b, ValueRange) {
    SoftmaxState state = emitEmptyState(b);
    return SmallVector<Value>{state.max, state.sum};
  });
  functions.add("sink", 1, 2, [&](SoftmaxBuilder &b, ValueRange inputs) {
    SoftmaxState state{inputs[0], b.number(1)};
    if (functions.isBase2)
      state = emitSinkState(b, inputs[0]);
    return SmallVector<Value>{state.max, state.sum};
  });
}

/// Computes rows in two halves of their tiles, and merges them.
static Errors checkRows(bool isBase2, bool isF64, bool hasSinks, bool isLazy,
                        Fault fault) {
  Functions functions(isBase2, isF64);
  addFormulas(functions, fault, hasSinks, isLazy);
  Rows rows = makeRows(functions, hasSinks);
  Functions::Numbers zeros(kRows);
  auto addTiles = [&](const std::string &start, size_t first) {
    State state = functions.call(start, {start == "sink" ? rows.sinks : zeros});
    state.push_back(zeros);
    for (size_t tile = first; tile < first + kTiles / 2; ++tile) {
      llvm::append_range(state, rows.scores[tile]);
      llvm::append_range(state, rows.values[tile]);
      state = functions.call("step", state);
    }
    return state;
  };
  bool startsWithSinks =
      hasSinks && (isBase2 || fault != Fault::EndWithoutSink);
  State merged = addTiles(startsWithSinks ? "sink" : "empty", 0);
  llvm::append_range(merged, addTiles("empty", kTiles / 2));
  merged = functions.call("merge", merged);
  merged.push_back(hasSinks ? rows.sinks : zeros);
  std::vector<Functions::Numbers> results = functions.call("end", merged);

  Errors errors;
  for (size_t row = 0; row < kRows; ++row) {
    double max = hasSinks ? rows.sinks[row] : -kInfinity;
    bool isNaN = false, hasKeys = false;
    auto forKeys = [&](llvm::function_ref<void(double, double)> body) {
      for (size_t tile = 0; tile < kTiles; ++tile)
        for (size_t key = 0; key < kTileKeys; ++key)
          body(rows.scores[tile][key][row] * functions.getUnit(),
               rows.values[tile][key][row]);
    };
    forKeys([&](double score, double) {
      isNaN |= std::isnan(score);
      hasKeys |= score != -kInfinity;
      max = std::max(max, score);
    });
    double output = results[0][row], logSum = results[1][row];
    if (isNaN || !hasKeys) {
      double sink = hasSinks ? rows.sinks[row] : -kInfinity;
      bool isRight =
          isNaN ? std::isnan(output) && std::isnan(logSum)
                : output == 0 && std::memcmp(&logSum, &sink, sizeof sink) == 0;
      errors.numWrong += !isRight;
      continue;
    }
    double sum = hasSinks ? std::exp(rows.sinks[row] - max) : 0, acc = 0;
    forKeys([&](double score, double value) {
      sum += std::exp(score - max);
      acc += std::exp(score - max) * value;
    });
    auto raise = [&](double &error, double result, double expected) {
      double difference = std::fabs(result - expected);
      errors.numWrong += std::isnan(difference);
      error = std::max(error, difference / std::max(1.0, std::fabs(expected)));
    };
    raise(errors.output, output, acc / sum);
    raise(errors.logSum, logSum, max + std::log(sum));
  }
  return errors;
}

static bool areRight(const Errors &errors, bool isF64) {
  double limit = isF64 ? 1e-14 : 4e-6;
  return errors.numWrong == 0 && errors.output <= limit &&
         errors.logSum <= limit;
}

TEST(Softmax, RowsAreThoseOfF64) {
  for (auto [isBase2, isF64] :
       {std::pair(true, false), {false, false}, {false, true}})
    for (bool hasSinks : {false, true}) {
      bool isLazy = hasSinks;
      Errors errors = checkRows(isBase2, isF64, hasSinks, isLazy, Fault::None);
      EXPECT_TRUE(areRight(errors, isF64))
          << isBase2 << isF64 << hasSinks << ": " << errors.output << ", "
          << errors.logSum << ", " << errors.numWrong << " wrong";
    }
}

TEST(Softmax, FaultsAreFound) {
  for (bool isBase2 : {true, false})
    for (Fault fault :
         {Fault::StaleMax, Fault::UnscaledMerge, Fault::EndWithoutSink})
      EXPECT_FALSE(
          areRight(checkRows(isBase2, /*isF64=*/false,
                             /*hasSinks=*/true, /*isLazy=*/false, fault),
                   /*isF64=*/false))
          << isBase2 << int(fault);
}
