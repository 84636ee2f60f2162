//===- TablesExhaustiveTest.cpp - tables of all positions below 2^20 ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `make test-exhaustive` runs these tests: for each config of the examples and
// both precisions, cos and sin of every frequency at every position below 2^20,
// in a table and in a rotation. A config takes ten seconds, so --gtest_filter
// is enough to go on after an interruption. POSENC_EXHAUSTIVE_STEP=N tests one
// of N tiles of positions.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "TableErrors.h"

#include "posenc/Frontend/ModuleBuilder.h"
#include "posenc/Interpreter/Frequencies.h"
#include "posenc/Registration/Registration.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

using namespace posenc;
using namespace posenc::test;

namespace {

using ConfigCase = std::tuple<std::string, mlir::posenc::Precision>;

std::string getName(const testing::TestParamInfo<ConfigCase> &info) {
  std::string name = llvm::sys::path::stem(std::get<0>(info.param)).str();
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  bool rounds = std::get<1>(info.param) == mlir::posenc::Precision::HfF32;
  return name + (rounds ? "_hf_f32" : "_exact");
}

/// Returns the module of a config; null after a failure.
mlir::OwningOpRef<mlir::ModuleOp> readConfig(mlir::MLIRContext &context,
                                             const ConfigCase &config) {
  const std::string &path = std::get<0>(config);
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text) {
    ADD_FAILURE() << path << ": " << text.getError().message();
    return {};
  }
  llvm::SmallVector<frontend::Diagnostic> diagnostics;
  std::optional<frontend::ModelConfig> model = frontend::readModelConfig(
      context, (*text)->getBuffer(), path, diagnostics);
  if (!model) {
    frontend::printDiagnostics(llvm::errs(), diagnostics);
    ADD_FAILURE() << path << ": cannot be read";
    return {};
  }
  mlir::posenc::ModuleBuilderOptions options;
  options.precision = std::get<1>(config);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::posenc::buildModule(context, *model, options);
  // Only tables are called.
  if (module)
    for (auto function :
         llvm::make_early_inc_range(module->getOps<mlir::func::FuncOp>()))
      if (!function.getSymName().starts_with("sincos"))
        function.erase();
  return module;
}

/// Returns a module with a rotation of one head by these frequencies, which
/// computes runs of positions by angle addition. Of the pairs (1, 0) it makes
/// cos and sin, without a rounding.
std::string getRotation(const TableErrors &errors,
                        mlir::posenc::FrequenciesAttr frequencies) {
  std::string type =
      "tensor<?x" + std::to_string(2 * errors.numPairs()) + "xf32>";
  std::string text = "func.func @rope(%x: " + type +
                     ", %p: tensor<?xi64>) -> " + type + " {\n";
  llvm::raw_string_ostream os(text);
  os << "  %r = posenc.rope half " << frequencies << " ins(%x : " << type
     << ") positions(%p : tensor<?xi64>) dims = [0] outs(%x : " << type
     << ")\n  return %r : " << type << "\n}\n";
  return text;
}

/// Rows of cos and of sin.
using Rows = std::pair<std::vector<float>, std::vector<float>>;

/// Returns the rows of a function @sincos; empty after a failure.
Rows callTable(const Kernel &kernel, const std::string &function,
               const runtime::Array &positions) {
  std::vector<runtime::Array> results =
      kernel.call(function, {positions.value()});
  if (results.size() != 2)
    return {};
  auto copy = [](const runtime::Array &array) {
    const auto *data = static_cast<const float *>(array.data());
    return std::vector<float>(data, data + array.sizeInBytes() / sizeof(float));
  };
  return {copy(results[0]), copy(results[1])};
}

/// The same of the rotation of `count` rows.
Rows callRotation(const Kernel &kernel, int64_t count, int64_t pairs,
                  const runtime::Array &positions) {
  runtime::Array x;
  std::string error;
  if (!runtime::Array::allocate(POSENC_F32, {count, 2 * pairs}, x, error))
    return {};
  auto *data = static_cast<float *>(x.data());
  for (int64_t i = 0; i < count * 2 * pairs; ++i)
    data[i] = i % (2 * pairs) < pairs ? 1 : 0;
  std::vector<runtime::Array> results =
      kernel.call("rope", {x.value(), positions.value()});
  if (results.size() != 1)
    return {};
  const auto *rotated = static_cast<const float *>(results[0].data());
  Rows rows;
  for (int64_t row = 0; row < count; ++row) {
    const float *first = rotated + row * 2 * pairs;
    rows.first.insert(rows.first.end(), first, first + pairs);
    rows.second.insert(rows.second.end(), first + pairs, first + 2 * pairs);
  }
  return rows;
}

constexpr int64_t kRows = 1 << 12;

// The largest errors, in ulp, that docs/numerics.md publishes.
constexpr double kLargestOfTables = 0.51;
constexpr double kLargestOfRotations = 1.5;

/// Checks the rows of all positions, and prints the largest error.
void checkRows(const std::string &name, const TableErrors &errors,
               ErrorUnit unit, double limit,
               llvm::function_ref<Rows(const runtime::Array &)> call) {
  const char *text = std::getenv("POSENC_EXHAUSTIVE_STEP");
  int64_t step = text ? std::max(1l, std::strtol(text, nullptr, 10)) : 1;
  constexpr int64_t kEnd = 1 << 20;
  TableError worst;
  float element = 0;
  std::vector<int64_t> sample;
  for (int64_t first = 0; first < kEnd; first += kRows * step) {
    std::vector<int64_t> positions(kRows);
    std::iota(positions.begin(), positions.end(), first);
    sample.push_back(positions[first / kRows * 17 % kRows]);
    auto [cos, sin] = call(makePositions(POSENC_I64, {kRows}, positions));
    ASSERT_EQ(int64_t(cos.size()), kRows * errors.numPairs());
    ASSERT_EQ(cos.size(), sin.size());
    TableError found =
        errors.findLargest(first, kRows, cos.data(), sin.data(), unit);
    if (found.ulp > worst.ulp) {
      worst = found;
      element =
          (found.isSine ? sin
                        : cos)[(found.position - first) * errors.numPairs() +
                               found.pair];
    }
  }
  double exact = errors.measureByMpfr(worst, element, unit);
  std::printf("%s: largest error %.5f ulp, %s of pair %ld at %ld\n",
              name.c_str(), exact, worst.isSine ? "sin" : "cos",
              static_cast<long>(worst.pair), static_cast<long>(worst.position));
  std::fflush(stdout);
  EXPECT_NEAR(worst.ulp, exact, 1e-6);
  EXPECT_LE(errors.compareWithMpfr(sample), 1e-6);
  EXPECT_LE(exact, limit);
}

class TablesExhaustive : public testing::TestWithParam<ConfigCase> {};

TEST_P(TablesExhaustive, EveryPositionIsWithinTheBound) {
  mlir::DialectRegistry registry;
  mlir::posenc::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module = readConfig(context, GetParam());
  ASSERT_TRUE(module);
  struct Function {
    std::string name;
    TableErrors errors;
    std::string rotation;
  };
  std::vector<Function> functions;
  module->walk([&](mlir::posenc::SincosOp op) {
    auto function = op->getParentOfType<mlir::func::FuncOp>();
    TableErrors errors(
        mlir::posenc::getFrequencySpec(op.getFrequencies(), op.getAxesAttr()));
    functions.push_back({function.getSymName().str(), errors,
                         getRotation(errors, op.getFrequencies())});
  });
  ASSERT_FALSE(functions.empty());
  Kernel tables(std::move(module));
  for (const Function &function : functions) {
    checkRows(function.name, function.errors, ErrorUnit::Element,
              kLargestOfTables, [&](const runtime::Array &positions) {
                return callTable(tables, function.name, positions);
              });
    Kernel rotation(function.rotation);
    checkRows("rotation of " + function.name, function.errors, ErrorUnit::Pair,
              kLargestOfRotations, [&](const runtime::Array &positions) {
                return callRotation(rotation, kRows, function.errors.numPairs(),
                                    positions);
              });
  }
}

std::vector<std::string> getConfigs() {
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator
           file(POSENC_SOURCE_DIR "/examples/configs", error),
       end;
       !error && file != end; file.increment(error))
    if (llvm::sys::path::extension(file->path()) == ".json")
      paths.push_back(file->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(
    Configs, TablesExhaustive,
    testing::Combine(testing::ValuesIn(getConfigs()),
                     testing::Values(mlir::posenc::Precision::Exact,
                                     mlir::posenc::Precision::HfF32)),
    getName);

} // namespace
