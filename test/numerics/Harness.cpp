//===- Harness.cpp - compiles and runs kernels in tests -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "posenc/Interpreter/Frequencies.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/KernelModule.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>

using namespace posenc;
using namespace posenc::test;
using mlir::posenc::Stage;
using mlir::posenc::TargetSpec;

const char *test::getName(Route route) {
  switch (route) {
  case Route::Direct:
    return "Direct";
  case Route::Linalg:
    return "Linalg";
  case Route::Vector:
    return "Vector";
  case Route::LLVM:
    return "LLVM";
  case Route::Vectors128:
    return "Vectors128";
  case Route::Vectors512:
    return "Vectors512";
  case Route::BF16Dots:
    return "BF16Dots";
  case Route::AMX:
    return "AMX";
  }
  return "";
}

/// Returns the context of all modules that this file parses. Loading the
/// dialects for each module would take a good part of its compile time.
static mlir::MLIRContext *getContext() {
  static mlir::MLIRContext *const context = [] {
    mlir::DialectRegistry registry;
    mlir::posenc::registerAllDialects(registry);
    return new mlir::MLIRContext(registry,
                                 mlir::MLIRContext::Threading::DISABLED);
  }();
  return context;
}

LoweredModule::LoweredModule(const std::string &text, Stage stage,
                             unsigned vectorBytes, Products products)
    : module(mlir::parseSourceString<mlir::ModuleOp>(text, getContext())) {
  llvm::Expected<TargetSpec> target = TargetSpec::parse("host");
  if (!target) {
    ADD_FAILURE() << llvm::toString(target.takeError());
    module = {};
    return;
  }
  if (vectorBytes)
    target->vectorBytes = vectorBytes;
  target->hasBF16Dots = products != Products::F32;
  target->hasAMXBF16 = products == Products::AMX;
  // A task has several tiles of queries, as in calls that are larger than those
  // of tests, or a single one if the batch is 1.
  target->tuning.attentionTasks = 4;
  if (!module || failed(mlir::posenc::lowerModule(*module, stage, *target))) {
    ADD_FAILURE() << "cannot lower\n" << text;
    module = {};
  }
}

mlir::OwningOpRef<mlir::ModuleOp> LoweredModule::clone() const {
  if (!module)
    return {};
  return mlir::ModuleOp(*module).clone();
}

static std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

/// Lowers a module and prints it; empty after a failure.
static std::string lowerToText(const std::string &text, Stage stage,
                               unsigned vectorBytes,
                               Products products = Products::F32) {
  LoweredModule lowered(text, stage, vectorBytes, products);
  mlir::OwningOpRef<mlir::ModuleOp> module = lowered.clone();
  return module ? print(*module) : "";
}

/// Returns the module's text at the intermediate stage of the route.
static std::string prepare(const std::string &text, Route route) {
  switch (route) {
  case Route::Direct:
    return text;
  case Route::Linalg:
    return lowerToText(text, Stage::Linalg, 0);
  case Route::Vector:
    return lowerToText(text, Stage::Vector, 0);
  case Route::LLVM:
    return lowerToText(text, Stage::Llvm, 0);
  case Route::Vectors128:
    return lowerToText(text, Stage::Vector, 16);
  case Route::Vectors512:
    return lowerToText(text, Stage::Vector, 64);
  case Route::BF16Dots:
    return lowerToText(text, Stage::Vector, 64, Products::BF16Dots);
  case Route::AMX:
    return lowerToText(text, Stage::Vector, 64, Products::AMX);
  }
  return text;
}

/// Returns the name of the test that is running, or an empty string.
static std::string getTestName() {
  const testing::TestInfo *test =
      testing::UnitTest::GetInstance()->current_test_info();
  return test ? std::string(test->test_suite_name()) + "." + test->name() : "";
}

Kernel::Kernel(const std::string &text, Route route,
               const mlir::posenc::GpuTargets &gpus) {
  static std::string owner;
  // Never destroyed: destructors of LLVM's static variables may run first.
  static auto &codes =
      *new std::map<std::pair<std::string, Route>, std::shared_ptr<const Code>>;
  if (std::string name = getTestName(); name != owner) {
    owner = name;
    codes.clear();
  }
  auto compileText = [&] {
    return compile(mlir::parseSourceString<mlir::ModuleOp>(prepare(text, route),
                                                           getContext()),
                   gpus);
  };
  if (!gpus.empty()) {
    code = compileText();
    return;
  }
  std::shared_ptr<const Code> &known = codes[{text, route}];
  if (!known)
    known = compileText();
  code = known;
}

Kernel::Kernel(mlir::OwningOpRef<mlir::ModuleOp> module)
    : code(compile(std::move(module), {})) {}

static mlir::posenc::OptLevel getOptLevel() {
  auto *unit = testing::UnitTest::GetInstance();
  const testing::TestSuite *suite = unit->current_test_suite();
  // A seeded fault changes the bits of both levels alike.
  if (!suite || llvm::StringRef(suite->name()).contains("Fault"))
    return mlir::posenc::OptLevel::O0;
  bool isFirst = suite->GetTestInfo(0) == unit->current_test_info();
  return isFirst || llvm::xxh3_64bits(getTestName()) % 12 == 0
             ? mlir::posenc::OptLevel::O3
             : mlir::posenc::OptLevel::O0;
}

std::shared_ptr<const Kernel::Code>
Kernel::compile(mlir::OwningOpRef<mlir::ModuleOp> module,
                const mlir::posenc::GpuTargets &gpus) {
  auto code = std::make_shared<Code>();
  mlir::posenc::JitOptions options;
  options.gpus = gpus;
  options.hasCpuCode = gpus.empty();
  options.optLevel = getOptLevel();
  if (module)
    code->jit = mlir::posenc::JitLibrary::create(*module, {}, options);
  if (!code->jit) {
    ADD_FAILURE() << "cannot compile\n" << (module ? print(*module) : "");
    return code;
  }
  std::string error;
  code->library = runtime::Library::fromSymbols(
      code->jit->getMetadata(),
      [](void *jit, const char *symbol) {
        return static_cast<mlir::posenc::JitLibrary *>(jit)->lookup(symbol);
      },
      code->jit.get(), error);
  if (!code->library)
    ADD_FAILURE() << error;
  return code;
}

std::vector<runtime::Array>
Kernel::call(const std::string &function,
             const std::vector<posenc_value> &inputs) const {
  std::vector<runtime::Array> results;
  if (!code->library)
    return results;
  std::string error;
  runtime::Function found = code->library.find(function, error);
  bool isReady = static_cast<bool>(found);
  std::vector<posenc_value> outputs;
  for (size_t i = 0, e = found ? found.numOutputs() : 0; i < e && isReady;
       ++i) {
    std::vector<int64_t> shape;
    runtime::Array array;
    isReady =
        found.outputShape(inputs, i, shape, error) &&
        runtime::Array::allocate(found.output(i).dtype(), shape, array, error);
    // Elements that a kernel does not write are NaNs, which the checks see.
    if (isReady)
      std::memset(array.data(), 0xff, array.sizeInBytes());
    results.push_back(std::move(array));
  }
  for (const runtime::Array &result : results)
    outputs.push_back(result.value());
  if (!isReady || !found.call(inputs, outputs, error)) {
    ADD_FAILURE() << error;
    results.clear();
  }
  return results;
}

reference::FrequencySpec test::getFrequencies(const std::string &fields,
                                              const std::string &axes) {
  using namespace mlir::posenc;
  mlir::MLIRContext context;
  context.loadDialect<PosencDialect>();
  auto frequencies = llvm::dyn_cast_or_null<FrequenciesAttr>(
      mlir::parseAttribute("#posenc.frequencies<" + fields + ">", &context));
  EXPECT_TRUE(frequencies) << fields;
  if (!frequencies)
    return {};
  AxesAttr axesAttr;
  if (!axes.empty())
    axesAttr =
        llvm::dyn_cast_or_null<AxesAttr>(mlir::parseAttribute(axes, &context));
  return getFrequencySpec(frequencies, axesAttr);
}

reference::DType test::getReferenceType(posenc_dtype dtype) {
  switch (dtype) {
  case POSENC_F64:
    return reference::DType::F64;
  case POSENC_F16:
    return reference::DType::F16;
  case POSENC_BF16:
    return reference::DType::BF16;
  case POSENC_I32:
    return reference::DType::I32;
  case POSENC_I64:
  case POSENC_INDEX:
    return reference::DType::I64;
  default:
    return reference::DType::F32;
  }
}

static runtime::Array allocate(posenc_dtype dtype, std::vector<int64_t> shape) {
  runtime::Array array;
  std::string error;
  if (!runtime::Array::allocate(dtype, std::move(shape), array, error))
    ADD_FAILURE() << error;
  return array;
}

namespace {
/// Standard normal numbers of one seed. The first ones are kept, as most tests
/// draw the same ones.
struct Normals {
  explicit Normals(uint64_t seed) : generator(seed) {}

  std::mt19937_64 generator;
  std::normal_distribution<double> normal;
  std::vector<double> numbers;
};
} // namespace

runtime::Array test::makeRandom(posenc_dtype dtype, std::vector<int64_t> shape,
                                uint64_t seed) {
  runtime::Array array = allocate(dtype, std::move(shape));
  constexpr size_t kMaxKept = 1 << 14, kMaxSeeds = 512;
  static std::map<uint64_t, Normals> known;
  if (known.size() == kMaxSeeds)
    known.clear();
  Normals &kept = known.try_emplace(seed, seed).first->second;
  size_t count = array.numElements();
  while (kept.numbers.size() < std::min(count, kMaxKept))
    kept.numbers.push_back(kept.normal(kept.generator));
  // Numbers beyond those that are kept continue from a copy of their state.
  std::optional<Normals> rest;
  if (count > kMaxKept)
    rest.emplace(kept);
  reference::DType type = getReferenceType(dtype);
  for (size_t i = 0; i < count; ++i) {
    double number =
        i < kMaxKept ? kept.numbers[i] : rest->normal(rest->generator);
    // The cast rounds as encode() does, which is slower.
    if (type == reference::DType::F32)
      array.dataAs<float>()[i] = float(number);
    else
      reference::storeBits(type, array.data(), i,
                           reference::encode(type, number));
  }
  return array;
}

runtime::Array test::makePositions(posenc_dtype dtype,
                                   std::vector<int64_t> shape,
                                   const std::vector<int64_t> &values) {
  runtime::Array array = allocate(dtype, std::move(shape));
  EXPECT_EQ(array.numElements(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == POSENC_I32)
      array.dataAs<int32_t>()[i] = static_cast<int32_t>(values[i]);
    else
      array.dataAs<int64_t>()[i] = values[i];
  }
  return array;
}

std::vector<int64_t> test::hardPositions(int64_t count) {
  const int64_t known[] = {0,          1,           -1,        7,
                           4095,       131071,      1048576,   16777215,
                           2147483647, -2147483647, 355,       103993,
                           -355,       1068966896,  411557987, 2147483646};
  std::mt19937_64 generator(11);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i)
    positions.push_back(
        i < 16 ? known[i]
               : static_cast<int64_t>(generator() >> (33 + i % 20)) *
                     (i % 3 == 0 ? -1 : 1));
  return positions;
}

reference::Array test::toReference(const runtime::Array &array) {
  return reference::fromBytes(getReferenceType(array.dtype()), array.data(),
                              array.shape());
}

reference::Comparison test::expectClose(const runtime::Array &result,
                                        const reference::Array &expected,
                                        reference::ResultKind kind,
                                        bool withAttention) {
  reference::DType type = getReferenceType(result.dtype());
  reference::CompareOptions options;
  options.shape = result.shape();
  if (kind == reference::ResultKind::Table)
    options.absoluteSlack =
        std::ldexp(1.0L, type == reference::DType::F64 ? -60 : -61);
  reference::Comparison comparison =
      reference::compare(type, result.data(), expected, options);
  EXPECT_FALSE(comparison.mismatch) << comparison.reason;
  EXPECT_LE(comparison.maxUlp,
            reference::defaultLimitUlp(kind, type, withAttention));
  return comparison;
}
