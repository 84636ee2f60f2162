//===- AttentionVectorTest.cpp - compiled attention -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention that becomes vectors, against the oracle: sizes around those of
// tiles, groups and rows of scores, and everything that can change a score.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "posenc/Reference/CompareAttention.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace posenc;
using namespace posenc::test;

namespace {

struct Sizes {
  int64_t batch = 2, queries = 37, keys = 101, heads = 4, keyHeads = 2;
  int64_t dim = 64, valueDim = 64;
  /// Of the caches, with `keys` slots each; 0: not paged.
  int64_t pages = 0;
};

/// A further operand of the function.
struct Operand {
  std::string type; // in MLIR
  runtime::Array array;
};

struct Case {
  const char *name;
  Sizes sizes;
  /// Text before `ins`, between it and `outs`, and after it.
  std::string attributes, groups, regions;
  std::function<void(reference::AttentionSpec &)> describe = {};
  /// `%x0` and so on; made anew for each test.
  std::function<std::vector<Operand>(posenc_dtype)> operands = {};
  bool isHeadMajor = false;
  bool hasLogSum = false;
};

const char *spell(posenc_dtype dtype) {
  switch (dtype) {
  case POSENC_F16:
    return "f16";
  case POSENC_BF16:
    return "bf16";
  default:
    return "f32";
  }
}

std::string tensorType(const Case &c, const std::string &t, int64_t heads,
                       int64_t dim, posenc_dtype dtype) {
  std::string h = std::to_string(heads);
  return "tensor<?x" + (c.isHeadMajor ? h + "x" + t : t + "x" + h) + "x" +
         std::to_string(dim) + "x" + spell(dtype) + ">";
}

std::string makeModule(const Case &c, posenc_dtype dtype,
                       const std::vector<Operand> &operands) {
  const Sizes &s = c.sizes;
  // Few queries, where that is known, take a way of their own.
  bool areFew = s.queries > 0 && s.queries <= 8;
  std::string tokens = areFew ? std::to_string(s.queries) : "?";
  std::string q = tensorType(c, tokens, s.heads, s.dim, dtype);
  std::string k = tensorType(c, "?", s.keyHeads, s.dim, dtype);
  std::string v = tensorType(c, "?", s.keyHeads, s.valueDim, dtype);
  std::string o = tensorType(c, tokens, s.heads, s.valueDim, dtype);
  std::string h = std::to_string(s.heads);
  std::string l = "tensor<?x" +
                  (c.isHeadMajor ? h + "x" + tokens : tokens + "x" + h) +
                  "xf32>";
  std::string both = o + ", " + l;
  std::string results = c.hasLogSum ? "(" + both + ")" : o;
  std::string list = c.hasLogSum ? both : o;
  std::string layout = c.isHeadMajor ? "head_major" : "token_major";
  std::string sizes = areFew ? "(%batch)" : "(%batch, %tokens)";

  std::string text = "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + v;
  for (size_t i = 0; i < operands.size(); ++i)
    text += ", %x" + std::to_string(i) + ": " + operands[i].type;
  text += ") -> " + results + " {\n  %c0 = arith.constant 0 : index\n";
  text += "  %batch = tensor.dim %q, %c0 : " + q + "\n";
  if (!areFew)
    text += std::string("  %dim = arith.constant ") +
            (c.isHeadMajor ? "2" : "1") +
            " : index\n  %tokens = tensor.dim %q, %dim : " + q + "\n";
  text += "  %o = tensor.empty" + sizes + " : " + o + "\n";
  if (c.hasLogSum)
    text += "  %l = tensor.empty" + sizes + " : " + l + "\n";
  text += c.hasLogSum ? "  %r:2 = " : "  %r = ";
  text += "posenc.attention query_layout = " + layout +
          " key_layout = " + layout + " " + c.attributes +
          "\n    ins(%q, %k, %v : " + q + ", " + k + ", " + v + ") " +
          c.groups + "\n    outs(%o" + (c.hasLogSum ? ", %l" : "") + " : " +
          list + ")\n" + c.regions;
  text += std::string("\n  return ") + (c.hasLogSum ? "%r#0, %r#1" : "%r") +
          " : " + list + "\n}\n";
  return text;
}

std::vector<int64_t> makeShape(const Case &c, int64_t batch, int64_t tokens,
                               int64_t heads, int64_t dim) {
  if (c.isHeadMajor)
    return {batch, heads, tokens, dim};
  return {batch, tokens, heads, dim};
}

struct Inputs {
  runtime::Array q, k, v;
  std::vector<Operand> operands;

  std::vector<posenc_value> values() const {
    std::vector<posenc_value> result{q.value(), k.value(), v.value()};
    for (const Operand &operand : operands)
      result.push_back(operand.array.value());
    return result;
  }
};

Inputs makeInputs(const Case &c, posenc_dtype dtype) {
  const Sizes &s = c.sizes;
  int64_t keyBatch = s.pages ? s.pages : s.batch;
  auto makeKeys = [&](int64_t dim, uint64_t seed) {
    return makeRandom(dtype, makeShape(c, keyBatch, s.keys, s.keyHeads, dim),
                      seed);
  };
  return {
      makeRandom(dtype, makeShape(c, s.batch, s.queries, s.heads, s.dim), 1),
      makeKeys(s.dim, 2), makeKeys(s.valueDim, 3),
      c.operands ? c.operands(dtype) : std::vector<Operand>()};
}

/// Keys and values that no batch entry has become NaN.
void spoilUnused(const Case &c, posenc_dtype dtype, Inputs &inputs) {
  reference::AttentionSpec spec;
  if (c.describe)
    c.describe(spec);
  if (spec.keyLengths.empty())
    return;
  const Sizes &s = c.sizes;
  int64_t batch = s.pages ? s.pages : s.batch;
  std::vector<bool> isUsed(batch * s.keys);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t j = 0; j < spec.keyLengths[b]; ++j)
      isUsed[s.pages ? spec.blockTable->pages[b * spec.blockTable->blocks +
                                              j / s.keys] *
                               s.keys +
                           j % s.keys
                     : b * s.keys + j] = true;
  reference::DType type = getReferenceType(dtype);
  uint64_t nan =
      reference::encode(type, std::numeric_limits<double>::quiet_NaN());
  auto spoil = [&](runtime::Array &array, int64_t dim) {
    for (int64_t i = 0, e = array.numElements(); i < e; ++i) {
      int64_t row = i / dim, ofBatch = s.keys * s.keyHeads;
      int64_t key = c.isHeadMajor ? row % s.keys : row / s.keyHeads % s.keys;
      if (!isUsed[row / ofBatch * s.keys + key])
        reference::storeBits(type, array.data(), i, nan);
    }
  };
  spoil(inputs.k, s.dim);
  spoil(inputs.v, s.valueDim);
}

/// NaNs and infinities in some keys and values, seen or not.
void spoilSome(posenc_dtype dtype, Inputs &inputs) {
  reference::DType type = getReferenceType(dtype);
  const double kinds[] = {std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};
  // Not both of a key: what the value is for if the score is minus infinity is
  // not said.
  int64_t first = 7;
  for (runtime::Array *array : {&inputs.k, &inputs.v}) {
    int64_t dim = array->shape().back();
    for (int64_t row = first++, e = array->numElements() / dim; row < e;
         row += 29)
      reference::storeBits(type, array->data(), row * dim + row % dim,
                           reference::encode(type, kinds[row % 3]));
  }
}

reference::AttentionResult compute(const Case &c, const Inputs &inputs) {
  reference::AttentionSpec spec;
  spec.queryLayout = spec.keyLayout = c.isHeadMajor
                                          ? reference::TokenLayout::HeadMajor
                                          : reference::TokenLayout::TokenMajor;
  if (c.describe)
    c.describe(spec);
  reference::Array q = toReference(inputs.q), k = toReference(inputs.k),
                   v = toReference(inputs.v);
  EXPECT_EQ(reference::checkAttention(q, k, v, spec), "");
  return reference::attention(q, k, v, spec);
}

reference::AttentionComparison compare(posenc_dtype dtype,
                                       const runtime::Array &result,
                                       const reference::AttentionResult &ref) {
  return reference::compareAttention(getReferenceType(dtype), result.data(),
                                     ref, result.shape());
}

/// Logarithms of sums are compared as sums: relatively, by their difference.
void expectLogSums(const runtime::Array &result,
                   const reference::Array &expected) {
  ASSERT_EQ(result.shape(), expected.shape);
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double want = static_cast<double>(expected.values[i]);
    double got = result.dataAs<float>()[i];
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << i << ": " << got;
    else if (std::isinf(want))
      EXPECT_EQ(got, want) << i;
    else
      EXPECT_NEAR(got, want, 4e-6 + 4e-7 * std::fabs(want)) << i;
  }
}

void expectRight(const Case &c, posenc_dtype dtype, Route route) {
  Inputs inputs = makeInputs(c, dtype);
  spoilUnused(c, dtype, inputs);
  std::string module = makeModule(c, dtype, inputs.operands);
  SCOPED_TRACE(module);
  Kernel kernel(module, route);
  for (bool isSpoilt : {false, true}) {
    if (isSpoilt)
      spoilSome(dtype, inputs);
    std::vector<runtime::Array> results = kernel.call("f", inputs.values());
    ASSERT_EQ(results.size(), c.hasLogSum ? 2u : 1u);
    reference::AttentionResult ref = compute(c, inputs);
    reference::AttentionComparison comparison =
        compare(dtype, results.front(), ref);
    // The few numbers that NaNs leave over may all be small.
    double limit =
        isSpoilt ? std::numeric_limits<double>::infinity()
                 : reference::defaultLimitRelative(getReferenceType(dtype));
    EXPECT_TRUE(comparison.within(limit))
        << "relative " << comparison.relative << ", " << comparison.maxRatio
        << " of the bound; " << comparison.reason << (isSpoilt ? ", NaNs" : "");
    if (c.hasLogSum)
      expectLogSums(results.back(), ref.logSumExp);
  }
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

Sizes sized(int64_t queries, int64_t keys) {
  Sizes sizes;
  sizes.queries = queries;
  sizes.keys = keys;
  return sizes;
}

Sizes headed(int64_t heads, int64_t keyHeads, int64_t dim, int64_t valueDim) {
  Sizes sizes;
  sizes.heads = heads;
  sizes.keyHeads = keyHeads;
  sizes.dim = dim;
  sizes.valueDim = valueDim;
  return sizes;
}

void setCausal(reference::AttentionSpec &spec) { spec.causal = true; }

std::function<void(reference::AttentionSpec &)>
window(std::optional<int64_t> left, std::optional<int64_t> right,
       bool causal = false) {
  return [=](reference::AttentionSpec &spec) {
    spec.left = left;
    spec.right = right;
    spec.causal = causal;
  };
}

reference::Rotation makeRotation(int64_t dim, double base, bool interleaved,
                                 int64_t offset) {
  reference::Rotation rotation;
  rotation.frequencies.kind = reference::ScalingKind::Default;
  rotation.frequencies.dim = dim;
  rotation.frequencies.base = base;
  rotation.frequencies.factor = 1;
  rotation.interleaved = interleaved;
  rotation.windowOffset = offset;
  return rotation;
}

/// Lengths of two batch entries.
std::vector<Operand> makeLengths(posenc_dtype) {
  std::vector<Operand> operands;
  operands.push_back(
      {"tensor<?xi64>", makePositions(POSENC_I64, {2}, {101, 23})});
  return operands;
}

const char kSoftCap[] = R"(
    score(%s, %b, %h, %i, %j) {
      %cap = arith.constant 5.0 : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      posenc.yield %y : f32
    })";

/// By the distance, and the head.
const char kBias[] = R"(
    score(%s, %b, %h, %i, %j) {
      %d = arith.subi %j, %i : index
      %d32 = arith.index_cast %d : index to i32
      %f = arith.sitofp %d32 : i32 to f32
      %h32 = arith.index_cast %h : index to i32
      %g = arith.sitofp %h32 : i32 to f32
      %slope = arith.constant 0.03 : f32
      %a = math.absf %f : f32
      %e = arith.mulf %g, %slope : f32
      %m = arith.mulf %a, %e : f32
      %y = arith.subf %s, %m : f32
      posenc.yield %y : f32
    })";

const char kDocuments[] = R"(
    where(%b, %h, %i, %j) {
      %zero = arith.constant 0 : index
      %at = arith.maxsi %i, %zero : index
      %x = tensor.extract %x0[%at] : tensor<?xi32>
      %y = tensor.extract %x0[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      posenc.yield %same : i1
    })";

std::vector<Operand> makeDocuments(posenc_dtype) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 101; ++i)
    numbers.push_back(i / 29);
  std::vector<Operand> operands;
  operands.push_back(
      {"tensor<?xi32>", makePositions(POSENC_I32, {101}, numbers)});
  return operands;
}

/// Of 1, or of all heads and queries; some elements are minus infinity.
std::vector<Operand> makeMask(bool isWhole) {
  std::vector<Operand> operands;
  std::vector<int64_t> shape{2, 4, 37, 101};
  if (!isWhole)
    shape = {2, 1, 1, 101};
  runtime::Array mask = makeRandom(POSENC_F32, shape, 5);
  for (size_t i = 0; i < mask.numElements(); i += 7)
    mask.dataAs<float>()[i] = i % 2 ? -std::numeric_limits<float>::infinity()
                                    : std::numeric_limits<float>::lowest();
  operands.push_back({isWhole ? "tensor<?x4x?x?xf32>" : "tensor<?x1x1x?xf32>",
                      std::move(mask)});
  return operands;
}

std::vector<Operand> makeSinks(posenc_dtype) {
  std::vector<Operand> operands;
  operands.push_back({"tensor<4xf32>", makeRandom(POSENC_F32, {4}, 6)});
  operands.back().array.dataAs<float>()[2] =
      -std::numeric_limits<float>::infinity();
  return operands;
}

std::vector<double> toDoubles(const runtime::Array &array) {
  reference::Array values = toReference(array);
  return {values.values.begin(), values.values.end()};
}

std::vector<Operand> makeNorms(posenc_dtype) {
  std::vector<Operand> operands;
  for (uint64_t seed : {7, 8})
    operands.push_back({"tensor<64xf32>", makeRandom(POSENC_F32, {64}, seed)});
  return operands;
}

const char kRotated[] =
    "causal query_rotation = <pairing = half, frequencies = "
    "#posenc.frequencies<dim = 64, base = 10000>> key_rotation = <pairing = "
    "half, frequencies = #posenc.frequencies<dim = 64, base = 10000>>";

void setRotated(reference::AttentionSpec &spec) {
  spec.causal = true;
  spec.queryRotation = spec.keyRotation = makeRotation(64, 10000, false, 0);
}

Sizes fewQueries(int64_t queries, int64_t keys, int64_t heads, int64_t keyHeads,
                 int64_t dim, int64_t valueDim) {
  Sizes sizes = headed(heads, keyHeads, dim, valueDim);
  sizes.queries = queries;
  sizes.keys = keys;
  return sizes;
}

Sizes oneQuery(int64_t keys, int64_t heads, int64_t keyHeads, int64_t dim,
               int64_t valueDim) {
  return fewQueries(1, keys, heads, keyHeads, dim, valueDim);
}

/// Pages of 16 for two batch entries, of 101 and 23 keys.
std::vector<Operand> makePages(posenc_dtype dtype) {
  std::vector<Operand> operands = makeLengths(dtype);
  operands.push_back(
      {"tensor<?x7xi32>",
       makePositions(POSENC_I32, {2, 7},
                     {3, 0, 8, 1, 6, 2, 9, 4, 7, 99, 99, 99, 99, 99})});
  return operands;
}

void setPages(reference::AttentionSpec &spec) {
  spec.causal = true;
  spec.keyLengths = {101, 23};
  spec.blockTable = reference::BlockTable();
  spec.blockTable->pages = {3, 0, 8, 1, 6, 2, 9, 4, 7, 0, 0, 0, 0, 0};
  spec.blockTable->blocks = 7;
}

Sizes paged(int64_t queries) {
  Sizes sizes = sized(queries, 16);
  sizes.pages = 10;
  return sizes;
}

const char kPages[] =
    "lengths(%x0 : tensor<?xi64>) block_table(%x1 : tensor<?x7xi32>)";

const Case kCases[] = {
    {"Plain", {}, "", "", ""},
    {"HeadMajor", {}, "causal", "", "", setCausal, {}, true},
    {"OneToken", sized(1, 1), "", "", ""},
    {"TwoQueries", sized(2, 200), "causal", "", "", setCausal},
    {"OneQuery", sized(1, 200), "causal", "", "", setCausal},
    {"OneQueryNoKeys", sized(1, 0), "", "", "", {}, {}, false, true},
    {"OneQueryAlone", oneQuery(101, 1, 1, 128, 128), "", "", ""},
    {"OneQueryThreeHeads", oneQuery(7, 3, 1, 40, 24), "", "", ""},
    {"OneQueryManyHeads",
     oneQuery(97, 16, 1, 128, 128),
     "",
     "",
     "",
     {},
     {},
     true,
     true},
    {"OneQueryNineHeads",
     oneQuery(37, 18, 2, 64, 32),
     "",
     "",
     "",
     {},
     {},
     true,
     true},
    {"OneQuerySevenHeads", oneQuery(70, 7, 1, 96, 96), "", "", ""},
    {"OneQueryWindow", oneQuery(300, 4, 2, 64, 64), "window_left = 150", "", "",
     window(150, std::nullopt)},
    {"OneQueryRotation", oneQuery(130, 4, 1, 64, 64), kRotated, "", "",
     setRotated},
    {"OneQueryLengths", oneQuery(101, 4, 2, 64, 64), "causal",
     "lengths(%x0 : tensor<?xi64>)", "",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.keyLengths = {101, 23};
     },
     makeLengths, true},
    {"OneQuerySinks", oneQuery(100, 4, 2, 64, 64), "",
     "sinks(%x0 : tensor<4xf32>)", "",
     [](reference::AttentionSpec &spec) {
       spec.sinks = toDoubles(makeSinks(POSENC_F32)[0].array);
     },
     makeSinks, false, true},
    {"OneQuerySoftCap", oneQuery(100, 4, 2, 64, 64), "", "", kSoftCap,
     [](reference::AttentionSpec &spec) {
       spec.score = [](double s, int64_t, int64_t, int64_t, int64_t) {
         return 5 * std::tanh(s / 5);
       };
     }},
    {"FewQueries", fewQueries(2, 300, 1, 1, 64, 64), "causal", "", "",
     setCausal},
    {"FewQueriesNoKeys",
     fewQueries(3, 0, 4, 2, 64, 64),
     "causal",
     "",
     "",
     setCausal,
     {},
     false,
     true},
    {"FewQueriesFewerKeys",
     fewQueries(8, 5, 4, 2, 64, 64),
     "causal",
     "",
     "",
     setCausal,
     {},
     false,
     true},
    {"FewQueriesTile",
     fewQueries(8, 64, 4, 1, 64, 64),
     "causal",
     "",
     "",
     setCausal,
     {},
     true},
    {"FewQueriesNotCausal",
     fewQueries(5, 77, 3, 1, 128, 40),
     "",
     "",
     "",
     {},
     {},
     true,
     true},
    {"FewQueriesThreeHeads",
     fewQueries(3, 131, 6, 2, 40, 24),
     "causal",
     "",
     "",
     setCausal,
     {},
     true,
     true},
    {"FewQueriesManyHeads",
     fewQueries(7, 97, 32, 2, 64, 64),
     "causal",
     "",
     "",
     setCausal,
     {},
     false,
     true},
    {"FewQueriesTooMany", fewQueries(8, 50, 34, 2, 256, 256), "causal", "", "",
     setCausal},
    {"FewQueriesWindow", fewQueries(8, 300, 4, 2, 64, 64),
     "causal window_left = 150", "", "", window(150, std::nullopt, true)},
    {"FewQueriesNarrowWindow",
     fewQueries(8, 300, 4, 1, 256, 8),
     "causal window_left = 2",
     "",
     "",
     window(2, std::nullopt, true),
     {},
     true,
     true},
    {"FewQueriesWindowRight",
     fewQueries(5, 120, 4, 2, 64, 64),
     "window_left = 40 window_right = 2",
     "",
     "",
     window(40, 2),
     {},
     true},
    {"FewQueriesRotation", fewQueries(5, 130, 4, 1, 64, 64), kRotated, "", "",
     setRotated},
    {"FewQueriesNorms", fewQueries(3, 70, 4, 2, 64, 64),
     "causal norm_eps = 0.01",
     "query_norm(%x0 : tensor<64xf32>) key_norm(%x1 : tensor<64xf32>)", "",
     [](reference::AttentionSpec &spec) {
       std::vector<Operand> operands = makeNorms(POSENC_F32);
       spec.causal = true;
       spec.queryNorm = {toDoubles(operands[0].array), 0.01};
       spec.keyNorm = {toDoubles(operands[1].array), 0.01};
     },
     makeNorms},
    {"FewQueriesLengths", fewQueries(5, 101, 4, 2, 64, 64), "causal",
     "lengths(%x0 : tensor<?xi64>)", "",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.keyLengths = {101, 23};
     },
     makeLengths, true},
    {"FewQueriesSinks", fewQueries(3, 100, 4, 2, 64, 64), "causal",
     "sinks(%x0 : tensor<4xf32>)", "",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.sinks = toDoubles(makeSinks(POSENC_F32)[0].array);
     },
     makeSinks, false, true},
    {"FiveKeys", sized(16, 5), "", "", ""},
    {"RowOfScores", sized(17, 6), "", "", ""},
    {"KeyTile", sized(9, 96), "", "", ""},
    {"BeyondKeyTile", sized(9, 97), "", "", ""},
    {"NoKeys", sized(10, 0), "", "", "", {}, {}, false, true},
    {"NoQueries", sized(0, 7), "", "", ""},
    {"SeveralQueryTiles", sized(300, 40), "", "", ""},
    {"ManyKeys", sized(11, 1000), "", "", ""},
    {"OneHead", headed(1, 1, 128, 128), "causal", "", "", setCausal},
    {"ThreeHeads", headed(3, 1, 40, 24), "causal", "", "", setCausal},
    {"EightHeads", headed(8, 1, 96, 80), "causal", "", "", setCausal},
    {"WideHead", headed(4, 2, 256, 8), "causal", "", "", setCausal},
    {"WideValues", headed(2, 2, 8, 256), "causal", "", "", setCausal},
    {"Causal", {}, "causal", "", "", setCausal},
    {"CausalSquare", sized(300, 300), "causal", "", "", setCausal},
    {"MoreQueriesThanKeys",
     sized(150, 40),
     "causal",
     "",
     "",
     setCausal,
     {},
     false,
     true},
    {"WindowLeft", sized(120, 130), "window_left = 20", "", "",
     window(20, std::nullopt)},
    {"WindowRight", sized(120, 130), "window_right = 20", "", "",
     window(std::nullopt, 20)},
    {"WindowBoth", sized(120, 130), "window_left = 3 window_right = 5", "", "",
     window(3, 5)},
    {"WindowCausal", sized(300, 300), "causal window_left = 70", "", "",
     window(70, std::nullopt, true)},
    {"WindowZero", sized(40, 40), "window_left = 0 window_right = 0", "", "",
     window(0, 0)},
    {"WindowHuge",
     {},
     "window_left = 9223372036854775807 window_right = 9223372036854775807",
     "",
     ""},
    {"Scale",
     {},
     "scale = 0.3",
     "",
     "",
     [](reference::AttentionSpec &spec) { spec.scale = 0.3; }},
    {"LogSum", {}, "causal", "", "", setCausal, {}, false, true},
    {"LogSumHeadMajor", {}, "causal", "", "", setCausal, {}, true, true},
    {"Rotation",
     {},
     "causal query_rotation = <pairing = half, frequencies = "
     "#posenc.frequencies<dim = 64, base = 10000>> key_rotation = <pairing = "
     "half, frequencies = #posenc.frequencies<dim = 64, base = 10000>>",
     "",
     "",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.queryRotation = spec.keyRotation =
           makeRotation(64, 10000, false, 0);
     }},
    {"RotationWindow",
     {},
     "query_rotation = <pairing = interleaved, frequencies = "
     "#posenc.frequencies<dim = 24, base = 10000>, offset = 40> key_rotation = "
     "<pairing = half, frequencies = #posenc.frequencies<dim = 32, base = "
     "500>, offset = 8>",
     "",
     "",
     [](reference::AttentionSpec &spec) {
       spec.queryRotation = makeRotation(24, 10000, true, 40);
       spec.keyRotation = makeRotation(32, 500, false, 8);
     }},
    {"RotationPositions",
     {},
     "query_rotation = <pairing = interleaved, frequencies = "
     "#posenc.frequencies<dim = 64, base = 10000>>",
     "query_positions(%x0 : tensor<?x?xi64>)",
     "",
     [](reference::AttentionSpec &spec) {
       spec.queryRotation = makeRotation(64, 10000, true, 0);
       spec.queryRotation->positions = hardPositions(2 * 37);
     },
     [](posenc_dtype) {
       std::vector<Operand> operands;
       operands.push_back(
           {"tensor<?x?xi64>",
            makePositions(POSENC_I64, {2, 37}, hardPositions(2 * 37))});
       return operands;
     }},
    {"Norms",
     {},
     "norm_eps = 0.01",
     "query_norm(%x0 : tensor<64xf32>) key_norm(%x1 : tensor<64xf32>)",
     "",
     [](reference::AttentionSpec &spec) {
       std::vector<Operand> operands = makeNorms(POSENC_F32);
       spec.queryNorm = {toDoubles(operands[0].array), 0.01};
       spec.keyNorm = {toDoubles(operands[1].array), 0.01};
     },
     makeNorms},
    {"Lengths",
     {},
     "causal",
     "lengths(%x0 : tensor<?xi64>)",
     "",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.keyLengths = {101, 23};
     },
     makeLengths,
     true,
     true},
    {"Paged", paged(40), "causal", kPages, "", setPages, makePages, false,
     true},
    {"PagedOneQuery", paged(1), "causal", kPages, "", setPages, makePages,
     true},
    {"PagedFewQueries", paged(5), "causal", kPages, "", setPages, makePages,
     false, true},
    {"SoftCap",
     {},
     "causal",
     "",
     kSoftCap,
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.score = [](double s, int64_t, int64_t, int64_t, int64_t) {
         return 5 * std::tanh(s / 5);
       };
     }},
    {"Bias",
     {},
     "causal",
     "",
     kBias,
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.score = [](double s, int64_t, int64_t h, int64_t i, int64_t j) {
         return s - std::fabs(double(j - i)) * h * 0.03;
       };
     }},
    {"Alibi",
     {},
     "causal",
     "",
     R"(
    score(%s, %b, %h, %i, %j) {
      %bias = posenc.alibi(%h, %i, %j) heads = 4 : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    })",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.score = [](double s, int64_t, int64_t h, int64_t i, int64_t j) {
         return s - std::exp2(-2.0 * (h + 1)) * std::fabs(double(j - i));
       };
     }},
    {"Where",
     {},
     "",
     "",
     kDocuments,
     [](reference::AttentionSpec &spec) {
       spec.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
         return std::max<int64_t>(i, 0) / 29 == j / 29;
       };
     },
     makeDocuments},
    {"WhereMoreQueries", sized(150, 101), "", "", kDocuments,
     [](reference::AttentionSpec &spec) {
       spec.sees = [](int64_t, int64_t, int64_t i, int64_t j) {
         return std::max<int64_t>(i, 0) / 29 == j / 29;
       };
     },
     makeDocuments},
    {"Mask",
     {},
     "",
     "mask(%x0 : tensor<?x4x?x?xf32>)",
     "",
     [](reference::AttentionSpec &spec) {
       spec.mask = {toReference(makeMask(true)[0].array), false};
     },
     [](posenc_dtype) { return makeMask(true); }},
    {"MaskOfKeys",
     {},
     "",
     "mask(%x0 : tensor<?x1x1x?xf32>)",
     "",
     [](reference::AttentionSpec &spec) {
       spec.mask = {toReference(makeMask(false)[0].array), false};
     },
     [](posenc_dtype) { return makeMask(false); },
     true},
    {"Sinks",
     {},
     "causal",
     "sinks(%x0 : tensor<4xf32>)",
     "",
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.sinks = toDoubles(makeSinks(POSENC_F32)[0].array);
     },
     makeSinks,
     false,
     true},
};

/// Those that are also compiled for other types and vectors.
const Case kForms[] = {
    {"Plain", {}, "", "", "", {}, {}, false, true},
    {"Rotation", headed(4, 1, 64, 40), kRotated, "", "", setRotated, {}, true},
    {"OneQuery", oneQuery(203, 8, 2, 64, 80), "", "", "", {}, {}, true, true},
    {"FewQueries",
     fewQueries(3, 203, 6, 2, 64, 80),
     "causal window_left = 30",
     "",
     "",
     window(30, std::nullopt, true),
     {},
     true,
     true},
    {"EightQueries",
     fewQueries(8, 133, 8, 2, 128, 64),
     "causal",
     "",
     "",
     setCausal,
     {},
     false,
     true},
    {"Bias",
     {},
     "causal window_left = 50",
     "",
     kBias,
     [](reference::AttentionSpec &spec) {
       spec.causal = true;
       spec.left = 50;
       spec.score = [](double s, int64_t, int64_t h, int64_t i, int64_t j) {
         return s - std::fabs(double(j - i)) * h * 0.03;
       };
     }},
};

class AttentionVectorTest : public testing::TestWithParam<Case> {};
class AttentionFormTest : public testing::TestWithParam<Case> {};

std::string getName(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

TEST_P(AttentionVectorTest, IsRight) {
  expectRight(GetParam(), POSENC_F32, Route::Direct);
}
INSTANTIATE_TEST_SUITE_P(All, AttentionVectorTest, testing::ValuesIn(kCases),
                         getName);

TEST_P(AttentionFormTest, IsRight) {
  for (posenc_dtype dtype : {POSENC_F16, POSENC_BF16})
    expectRight(GetParam(), dtype, Route::Direct);
  for (Route route : {Route::Vectors128, Route::Vectors512, Route::Vector})
    expectRight(GetParam(), POSENC_F32, route);
}
INSTANTIATE_TEST_SUITE_P(Some, AttentionFormTest, testing::ValuesIn(kForms),
                         getName);

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// Put into the code where it is printed as vectors of 32 bytes.
const Fault kFaults[] = {
    {"Control", "", ""},
    {"Scale", "dense<0.180336878>", "dense<0.18035>"},
    {"Coefficient", "dense<0.240222424>", "dense<0.2403>"},
    {"Magic", "dense<0x4B40007F>", "dense<0x4B400080>"},
    {"Exponent", "dense<23>", "dense<22>"},
    {"Maximum", "arith.cmpf ogt", "arith.cmpf olt"},
    {"Bound", "arith.cmpi slt, %", "arith.cmpi sle, %"},
    {"Lane", "[0, 1, 2, 3, 4, 5, 6, 7]", "[0, 1, 2, 3, 5, 4, 6, 7]"},
    {"Transposition", "[0, 8, 1, 9, 2, 10, 3, 11]",
     "[0, 8, 1, 9, 2, 10, 11, 3]"},
};

class AttentionExpFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(AttentionExpFaultTest, IsCaught) {
  const Fault &fault = GetParam();
  Case c{"Fault", {}, "causal", "", "", setCausal};
  Inputs inputs = makeInputs(c, POSENC_F32);
  std::string code = replace(lowerToText(makeModule(c, POSENC_F32, {}),
                                         mlir::posenc::Stage::Vector, 32),
                             fault);
  std::vector<runtime::Array> results = Kernel(code).call("f", inputs.values());
  ASSERT_EQ(results.size(), 1u);
  reference::AttentionComparison comparison =
      compare(POSENC_F32, results.front(), compute(c, inputs));
  EXPECT_EQ(
      comparison.within(reference::defaultLimitRelative(reference::DType::F32)),
      std::string(fault.name) == "Control")
      << comparison.relative;
}
INSTANTIATE_TEST_SUITE_P(Code, AttentionExpFaultTest,
                         testing::ValuesIn(kFaults), getFaultName);

} // namespace
