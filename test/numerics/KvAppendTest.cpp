//===- KvAppendTest.cpp - compiled kv_append against the oracle -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draw.h"
#include "Harness.h"

#include "posenc/Reference/Attention.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <random>

using namespace posenc;
using namespace posenc::test;

namespace {

constexpr int64_t kBatch = 3, kTokens = 4, kHeads = 2, kSlots = 11, kPages = 5;
constexpr int64_t kDim = 14, kValueDim = 6;

struct AppendCase {
  posenc_dtype dtype = POSENC_F32;
  bool headMajor = false, cacheHeadMajor = false;
  bool slots = false;  // Slots as an operand; otherwise lengths.
  bool ragged = false; // Only with slots.
  bool norm = false, rotation = false, positions = false, axes = false;
  Route route = Route::Direct;
};

std::string getName(const testing::TestParamInfo<AppendCase> &info) {
  const AppendCase &c = info.param;
  std::string name = posenc_dtype_name(c.dtype);
  name[0] = static_cast<char>(std::toupper(name[0]));
  name += c.headMajor ? "HeadMajor" : "TokenMajor";
  name += c.cacheHeadMajor ? "ToHeadMajor" : "ToTokenMajor";
  name += c.ragged ? "Ragged" : c.slots ? "Slots" : "Lengths";
  if (c.norm)
    name += "Norm";
  if (c.rotation)
    name += c.axes ? "Axes" : c.positions ? "Positions" : "TokenIndices";
  return name + getName(c.route);
}

std::string getModule(const AppendCase &c) {
  std::string dtype = posenc_dtype_name(c.dtype);
  auto heads = [&](bool headMajor, bool ragged, int64_t dim) {
    std::string count = std::to_string(kHeads);
    return std::string("tensor<") + (ragged ? "" : "?x") +
           (headMajor ? count + "x?x" : "?x" + count + "x") +
           std::to_string(dim) + "x" + dtype + ">";
  };
  std::string k = heads(c.headMajor, c.ragged, kDim);
  std::string v = heads(c.headMajor, c.ragged, kValueDim);
  std::string keys = heads(c.cacheHeadMajor, false, kDim);
  std::string values = heads(c.cacheHeadMajor, false, kValueDim);
  std::string arguments =
      "%k: " + k + ", %v: " + v + ", %keys: " + keys + ", %values: " + values;
  std::string flags, groups;
  auto group = [&](const std::string &name, const std::string &type) {
    arguments += ", %" + name + ": " + type;
    groups += " " + name + "(%" + name + " : " + type + ")";
  };
  if (c.headMajor)
    flags += " layout = head_major";
  if (c.cacheHeadMajor)
    flags += " cache_layout = head_major";
  if (c.norm)
    flags += " norm_eps = 1.0e-5";
  if (c.rotation)
    flags += std::string(" rotation = <pairing = half, frequencies = "
                         "#posenc.frequencies<dim = 8, base = 10000>, offset "
                         "= 3") +
             (c.axes ? ", axes = #posenc.axes<contiguous, [1, 3]>>" : ">");
  std::string grid = c.ragged ? "?x" : "?x?x";
  if (c.positions)
    group("positions",
          "tensor<" + std::string(c.axes ? "2x" : "") + grid + "i64>");
  if (c.norm)
    group("norm", "tensor<" + std::to_string(kDim) + "x" + dtype + ">");
  if (c.slots)
    group("slots", "tensor<" + grid + "i32>");
  else
    group("lengths", "tensor<?xi64>");
  std::string types = keys + ", " + values;
  return "func.func @f(" + arguments + ") -> (" + types +
         ") {\n  %r:2 = posenc.kv_append" + flags + " ins(%k, %v : " + k +
         ", " + v + ")" + groups + " outs(%keys, %values : " + types +
         ")\n  return %r#0, %r#1 : " + types + "\n}\n";
}

/// The inputs of a case, and the caches that the oracle computes.
struct AppendData {
  explicit AppendData(const AppendCase &c);

  std::vector<posenc_value> getInputs() const {
    std::vector<posenc_value> values{k.value(), v.value(), keys.value(),
                                     this->values.value()};
    for (const runtime::Array *array : {&positions, &norm, &slots})
      if (array->dtype() != POSENC_DTYPE_INVALID)
        values.push_back(array->value());
    return values;
  }
  void check(const AppendCase &c, const runtime::Array &resultKeys,
             const runtime::Array &resultValues) const;

  runtime::Array k, v, keys, values, positions, norm, slots;
  reference::Caches expected;
};

AppendData::AppendData(const AppendCase &c) {
  auto shape = [&](bool headMajor, bool ragged, int64_t batch, int64_t tokens,
                   int64_t dim) {
    std::vector<int64_t> sizes{batch, headMajor ? kHeads : tokens,
                               headMajor ? tokens : kHeads, dim};
    if (ragged)
      sizes.erase(sizes.begin());
    return sizes;
  };
  int64_t tokens = c.ragged ? kBatch * kTokens : kTokens;
  int64_t cacheBatch = c.slots ? kPages : kBatch;
  k = makeRandom(c.dtype, shape(c.headMajor, c.ragged, kBatch, tokens, kDim),
                 1);
  v = makeRandom(c.dtype,
                 shape(c.headMajor, c.ragged, kBatch, tokens, kValueDim), 2);
  keys = makeRandom(
      c.dtype, shape(c.cacheHeadMajor, false, cacheBatch, kSlots, kDim), 3);
  values = makeRandom(
      c.dtype, shape(c.cacheHeadMajor, false, cacheBatch, kSlots, kValueDim),
      4);

  reference::AppendSpec spec;
  using reference::TokenLayout;
  auto getLayout = [](bool headMajor) {
    return headMajor ? TokenLayout::HeadMajor : TokenLayout::TokenMajor;
  };
  spec.rowLayout = getLayout(c.headMajor);
  spec.cacheLayout = getLayout(c.cacheHeadMajor);
  int64_t count = kBatch * kTokens;
  std::vector<int64_t> grid{kBatch, kTokens};
  if (c.ragged)
    grid = {count};
  // The new rows end at the last slot, begin before the first one, or fill the
  // first slots.
  const int64_t lengths[] = {kSlots, kTokens - 2, kTokens};
  std::vector<int64_t> tokenIndices;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t t = 0; t < kTokens; ++t)
      tokenIndices.push_back(lengths[b] - kTokens + t);
  std::vector<int64_t> angles = tokenIndices;
  if (c.positions) {
    angles = hardPositions(c.axes ? 2 * count : count);
    std::vector<int64_t> sizes = grid;
    if (c.axes)
      sizes.insert(sizes.begin(), 2);
    positions = makePositions(POSENC_I64, sizes, angles);
  }
  if (c.norm) {
    norm = makeRandom(c.dtype, {kDim}, 5);
    spec.keyNorm.emplace();
    reference::Array weights = toReference(norm);
    spec.keyNorm->weight.assign(weights.values.begin(), weights.values.end());
    spec.keyNorm->epsilon = 1e-5;
  }
  if (c.slots) {
    std::vector<int64_t> all(kPages * kSlots);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), std::mt19937_64(6));
    spec.slots.assign(all.begin(), all.begin() + count);
    spec.slots[3] = -1;
    spec.slots[5] = -7;
    slots = makePositions(POSENC_I32, grid, spec.slots);
  } else {
    for (int64_t i = 0; i < count; ++i)
      spec.slots.push_back(
          tokenIndices[i] < 0 ? -1 : i / kTokens * kSlots + tokenIndices[i]);
    slots = makePositions(POSENC_I64, {kBatch}, {lengths, lengths + kBatch});
  }
  if (c.rotation) {
    spec.keyRotation.emplace();
    spec.keyRotation->frequencies.dim = 8;
    spec.keyRotation->frequencies.base = 10000;
    spec.keyRotation->windowOffset = 3;
    if (c.axes) {
      spec.keyRotation->axes.kind = reference::AxesKind::Sections;
      spec.keyRotation->axes.sections = {1, 3};
    }
    spec.keyRotation->positions = angles;
  }
  expected = reference::append({toReference(keys), toReference(values)},
                               toReference(k), toReference(v), spec);
}

void AppendData::check(const AppendCase &c, const runtime::Array &resultKeys,
                       const runtime::Array &resultValues) const {
  reference::DType type = getReferenceType(c.dtype);
  // The norm adds four roundings in the type of sums.
  long double limit =
      reference::defaultLimitUlp(reference::ResultKind::Rotated, type, false);
  if (c.norm)
    limit += type == reference::DType::F32 || type == reference::DType::F64
                 ? 4
                 : 0.01L;
  reference::CompareOptions options;
  options.shape = resultKeys.shape();
  reference::Comparison comparison =
      reference::compare(type, resultKeys.data(), expected.keys, options);
  EXPECT_TRUE(comparison.within(limit))
      << comparison.reason << static_cast<double>(comparison.maxUlp);
  options.shape = resultValues.shape();
  comparison =
      reference::compare(type, resultValues.data(), expected.values, options);
  EXPECT_TRUE(comparison.within(0))
      << comparison.reason << static_cast<double>(comparison.maxUlp);
}

class KvAppendTest : public testing::TestWithParam<AppendCase> {};

/// Appends out of place into new caches, and then in place.
TEST_P(KvAppendTest, MatchesOracle) {
  const AppendCase &c = GetParam();
  AppendData data(c);
  Kernel kernel(getModule(c), c.route);
  std::vector<runtime::Array> results = kernel.call("f", data.getInputs());
  ASSERT_EQ(results.size(), 2u);
  data.check(c, results[0], results[1]);

  std::string error;
  runtime::Function function = kernel.getLibrary().find("f", error);
  ASSERT_TRUE(function) << error;
  bool isDone = function.call(data.getInputs(),
                              {data.keys.value(), data.values.value()}, error);
  // A linalg loop does not say that its result may alias the cache, so the call
  // is refused.
  EXPECT_EQ(isDone, c.route != Route::Linalg) << error;
  if (isDone)
    data.check(c, data.keys, data.values);
}

/// Only one of the caches is updated in place; the other one is copied.
TEST(KvAppendInPlaceTest, OneOfTwo) {
  AppendCase c;
  c.slots = c.ragged = true;
  Kernel kernel(getModule(c));
  std::string error;
  runtime::Function function = kernel.getLibrary().find("f", error);
  ASSERT_TRUE(function) << error;
  for (bool isKey : {false, true}) {
    AppendData data(c);
    runtime::Array other =
        makeRandom(c.dtype, (isKey ? data.values : data.keys).shape(), 9);
    runtime::Array &keys = isKey ? data.keys : other;
    runtime::Array &values = isKey ? other : data.values;
    EXPECT_TRUE(
        function.call(data.getInputs(), {keys.value(), values.value()}, error))
        << error;
    data.check(c, keys, values);
  }
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

/// A parallel_for callback that runs all tasks in reverse order and counts
/// them.
void runBackwards(void *count, void (*body)(void *, int64_t), void *argument,
                  int64_t n) {
  *static_cast<int64_t *>(count) = n;
  for (int64_t i = n; i-- > 0;)
    body(argument, i);
}

/// Appends `tokens` tokens, checks the caches, and returns the number of tasks.
int64_t countTasks(int64_t tokens, bool inPlace) {
  const char *text = R"(
func.func @f(%k: tensor<?x?x4x64xf32>, %kc: tensor<?x4x?x64xf32>,
             %vc: tensor<?x4x?x64xf32>, %n: tensor<?xi64>)
    -> (tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 64>>
    ins(%k, %k : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>)
    lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>)
  return %r#0, %r#1 : tensor<?x4x?x64xf32>, tensor<?x4x?x64xf32>
})";
  constexpr int64_t batch = 2, slots = 700, length = 690;
  runtime::Array k = makeRandom(POSENC_F32, {batch, tokens, 4, 64}, 1);
  runtime::Array keys = makeRandom(POSENC_F32, {batch, 4, slots, 64}, 2);
  runtime::Array values = makeRandom(POSENC_F32, {batch, 4, slots, 64}, 3);
  runtime::Array lengths = makePositions(POSENC_I64, {batch}, {length, length});
  reference::AppendSpec spec;
  spec.cacheLayout = reference::TokenLayout::HeadMajor;
  spec.keyRotation.emplace();
  spec.keyRotation->frequencies.dim = 64;
  spec.keyRotation->frequencies.base = 10000;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < tokens; ++t) {
      spec.slots.push_back(b * slots + length - tokens + t);
      spec.keyRotation->positions.push_back(length - tokens + t);
    }
  reference::Caches expected =
      reference::append({toReference(keys), toReference(values)},
                        toReference(k), toReference(k), spec);

  Kernel kernel(text);
  std::string error;
  int64_t tasks = 1;
  EXPECT_EQ(posenc_library_set_parallel_for(kernel.getLibrary().get(),
                                            runBackwards, &tasks),
            POSENC_OK);
  runtime::Function function = kernel.getLibrary().find("f", error);
  runtime::Array keysOut = makeRandom(POSENC_F32, keys.shape(), 4);
  runtime::Array valuesOut = makeRandom(POSENC_F32, keys.shape(), 5);
  const runtime::Array &toKeys = inPlace ? keys : keysOut;
  const runtime::Array &toValues = inPlace ? values : valuesOut;
  EXPECT_TRUE(
      function &&
      function.call({k.value(), keys.value(), values.value(), lengths.value()},
                    {toKeys.value(), toValues.value()}, error))
      << error;
  expectClose(toKeys, expected.keys, reference::ResultKind::Rotated);
  expectClose(toValues, expected.values, reference::ResultKind::Rotated);
  return tasks;
}

/// The number of tasks follows from the new tokens, not from the cache size.
TEST(KvAppendTasksTest, ManyTokensAreSplit) {
  EXPECT_GT(countTasks(650, /*inPlace=*/true), 3);
  EXPECT_GT(countTasks(650, /*inPlace=*/false), 3);
  EXPECT_EQ(countTasks(1, /*inPlace=*/true), 1);
}

std::vector<AppendCase> getCases() {
  std::vector<AppendCase> cases;
  const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F16, POSENC_BF16,
                                 POSENC_F64};
  // Layouts, forms of the slots, and operations on the keys.
  for (int number = 0; number < 36; ++number) {
    AppendCase c;
    c.headMajor = number % 2;
    c.cacheHeadMajor = number / 2 % 2;
    c.slots = number / 4 % 3 != 0;
    c.ragged = number / 4 % 3 == 2;
    c.norm = number % 3 == 1;
    c.rotation = number / 12 > 0;
    c.positions = c.rotation && (c.slots || number % 2);
    c.axes = c.positions && number % 5 == 0;
    c.dtype = dtypes[(number + number / 4) % 4];
    c.route = number % 4 == 3 ? Route::Linalg : Route::Direct;
    cases.push_back(c);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, KvAppendTest,
                         testing::ValuesIn(drawCases("Cases/KvAppendTest",
                                                     getCases(), 2, getName)),
                         getName);

} // namespace
