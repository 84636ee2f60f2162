//===- AttentionVectorCase.cpp - cases of vectorized attention ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionVectorCase.h"

#include <cmath>
#include <limits>
#include <map>
#include <tuple>

using namespace posenc;
using namespace posenc::test;
using namespace posenc::test::vectors;

static const char *spell(posenc_dtype dtype) {
  switch (dtype) {
  case POSENC_F16:
    return "f16";
  case POSENC_BF16:
    return "bf16";
  default:
    return "f32";
  }
}

static std::string tensorType(const Case &c, const std::string &t,
                              int64_t heads, int64_t dim, posenc_dtype dtype) {
  std::string h = std::to_string(heads);
  return "tensor<?x" + (c.isHeadMajor ? h + "x" + t : t + "x" + h) + "x" +
         std::to_string(dim) + "x" + spell(dtype) + ">";
}

std::string vectors::makeModule(const Case &c, posenc_dtype dtype,
                                const std::vector<Operand> &operands) {
  const Sizes &s = c.sizes;
  // A static number of queries selects the decode kernel at compile time.
  bool isStatic = c.hasStaticQueries && s.queries > 0 && s.queries <= 8;
  std::string tokens = isStatic ? std::to_string(s.queries) : "?";
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
  std::string sizes = isStatic ? "(%batch)" : "(%batch, %tokens)";

  std::string text = "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + v;
  for (size_t i = 0; i < operands.size(); ++i)
    text += ", %x" + std::to_string(i) + ": " + operands[i].type;
  text += ") -> " + results + " {\n  %c0 = arith.constant 0 : index\n";
  text += "  %batch = tensor.dim %q, %c0 : " + q + "\n";
  if (!isStatic)
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

static std::vector<int64_t> makeShape(const Case &c, int64_t batch,
                                      int64_t tokens, int64_t heads,
                                      int64_t dim) {
  if (c.isHeadMajor)
    return {batch, heads, tokens, dim};
  return {batch, tokens, heads, dim};
}

Inputs vectors::makeInputs(const Case &c, posenc_dtype dtype) {
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

/// Puts NaNs into the keys and values beyond the length of each sequence.
static void spoilUnused(const Case &c, posenc_dtype dtype, Inputs &inputs) {
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
      int64_t row = i / dim, rowsPerBatch = s.keys * s.keyHeads;
      int64_t key = c.isHeadMajor ? row % s.keys : row / s.keyHeads % s.keys;
      if (!isUsed[row / rowsPerBatch * s.keys + key])
        reference::storeBits(type, array.data(), i, nan);
    }
  };
  spoil(inputs.k, s.dim);
  spoil(inputs.v, s.valueDim);
}

/// Puts NaNs and infinities into some keys and values, masked or not.
static void spoilSome(posenc_dtype dtype, Inputs &inputs) {
  reference::DType type = getReferenceType(dtype);
  const double kinds[] = {std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};
  // Never both the key and the value of a token: the result is unspecified if
  // the score is minus infinity and the value is not finite.
  int64_t first = 7;
  for (runtime::Array *array : {&inputs.k, &inputs.v}) {
    int64_t dim = array->shape().back();
    for (int64_t row = first++, e = array->numElements() / dim; row < e;
         row += 29)
      reference::storeBits(type, array->data(), row * dim + row % dim,
                           reference::encode(type, kinds[row % 3]));
  }
}

reference::AttentionResult vectors::compute(const Case &c,
                                            const Inputs &inputs) {
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

reference::AttentionComparison
vectors::compare(posenc_dtype dtype, const runtime::Array &result,
                 const reference::AttentionResult &ref) {
  return reference::compareAttention(getReferenceType(dtype), result.data(),
                                     ref, result.shape());
}

/// Compares the log-sum-exp with a small absolute and relative tolerance: their
/// difference is the relative error of the sum.
static void expectLogSums(const runtime::Array &result,
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

/// Compiles a module, or returns the kernel of an earlier call. Sizes are
/// dynamic, so cases that differ in their sizes share a module.
static const Kernel &getKernel(const std::string &module, Route route) {
  static std::map<std::pair<std::string, Route>, Kernel> kernels;
  auto found = kernels.find({module, route});
  if (found != kernels.end())
    return found->second;
  // Tests that share a module follow each other.
  constexpr size_t kMaxKernels = 4;
  if (kernels.size() == kMaxKernels)
    kernels.clear();
  return kernels
      .emplace(std::piecewise_construct, std::forward_as_tuple(module, route),
               std::forward_as_tuple(module, route))
      .first->second;
}

void vectors::expectMatchesOracle(const Case &c, posenc_dtype dtype,
                                  Route route) {
  Inputs inputs = makeInputs(c, dtype);
  spoilUnused(c, dtype, inputs);
  std::string module = makeModule(c, dtype, inputs.operands);
  SCOPED_TRACE(module);
  const Kernel &kernel = getKernel(module, route);
  for (bool hasNonFinite : {false, true}) {
    if (hasNonFinite)
      spoilSome(dtype, inputs);
    std::vector<runtime::Array> results = kernel.call("f", inputs.values());
    ASSERT_EQ(results.size(), c.hasLogSum ? 2u : 1u);
    reference::AttentionResult ref = compute(c, inputs);
    reference::AttentionComparison comparison =
        compare(dtype, results.front(), ref);
    // Most results may be NaN, and the error of the few others relative to
    // their norm has no useful limit.
    double limit =
        hasNonFinite ? std::numeric_limits<double>::infinity()
                     : reference::defaultLimitRelative(getReferenceType(dtype));
    EXPECT_TRUE(comparison.within(limit))
        << "relative error " << comparison.relative << ", "
        << comparison.maxRatio << " of the bound; " << comparison.reason
        << (hasNonFinite ? ", some inputs are not finite" : "");
    if (c.hasLogSum)
      expectLogSums(results.back(), ref.logSumExp);
  }
}

//===----------------------------------------------------------------------===//
// Building blocks of cases
//===----------------------------------------------------------------------===//

Case Case::causal() const {
  Case result = *this;
  result.attributes = "causal " + attributes;
  result.describe = [inner = describe](reference::AttentionSpec &spec) {
    spec.causal = true;
    if (inner)
      inner(spec);
  };
  return result;
}

Sizes vectors::sized(int64_t queries, int64_t keys) {
  Sizes sizes;
  sizes.queries = queries;
  sizes.keys = keys;
  return sizes;
}

Sizes vectors::headed(int64_t heads, int64_t keyHeads, int64_t dim,
                      int64_t valueDim) {
  Sizes sizes;
  sizes.heads = heads;
  sizes.keyHeads = keyHeads;
  sizes.dim = dim;
  sizes.valueDim = valueDim;
  return sizes;
}

std::function<void(reference::AttentionSpec &)>
vectors::window(std::optional<int64_t> left, std::optional<int64_t> right,
                bool causal) {
  return [=](reference::AttentionSpec &spec) {
    spec.left = left;
    spec.right = right;
    spec.causal = causal;
  };
}

reference::Rotation vectors::makeRotation(int64_t dim, double base,
                                          bool interleaved, int64_t offset) {
  reference::Rotation rotation;
  rotation.frequencies.dim = dim;
  rotation.frequencies.base = base;
  rotation.interleaved = interleaved;
  rotation.windowOffset = offset;
  return rotation;
}

std::vector<Operand> vectors::makeLengths(posenc_dtype) {
  std::vector<Operand> operands;
  operands.push_back(
      {"tensor<?xi64>", makePositions(POSENC_I64, {2}, {101, 23})});
  return operands;
}

void vectors::setLengths(reference::AttentionSpec &spec) {
  spec.keyLengths = {101, 23};
}

const char vectors::kSoftCap[] = R"(
    score(%s, %b, %h, %i, %j) {
      %cap = arith.constant 5.0 : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      posenc.yield %y : f32
    })";

static std::vector<double> toDoubles(const runtime::Array &array) {
  reference::Array values = toReference(array);
  return {values.values.begin(), values.values.end()};
}

std::vector<Operand> vectors::makeSinks(posenc_dtype) {
  std::vector<Operand> operands;
  operands.push_back({"tensor<4xf32>", makeRandom(POSENC_F32, {4}, 6)});
  operands.back().array.dataAs<float>()[2] =
      -std::numeric_limits<float>::infinity();
  return operands;
}

void vectors::setSinks(reference::AttentionSpec &spec) {
  spec.sinks = toDoubles(makeSinks(POSENC_F32)[0].array);
}

std::vector<Operand> vectors::makeNorms(posenc_dtype) {
  std::vector<Operand> operands;
  for (uint64_t seed : {7, 8})
    operands.push_back({"tensor<64xf32>", makeRandom(POSENC_F32, {64}, seed)});
  return operands;
}

void vectors::setNorms(reference::AttentionSpec &spec) {
  std::vector<Operand> operands = makeNorms(POSENC_F32);
  spec.queryNorm = {toDoubles(operands[0].array), 0.01};
  spec.keyNorm = {toDoubles(operands[1].array), 0.01};
}

const char vectors::kRotated[] =
    "causal query_rotation = <pairing = half, frequencies = "
    "#posenc.frequencies<dim = 64, base = 10000>> key_rotation = <pairing = "
    "half, frequencies = #posenc.frequencies<dim = 64, base = 10000>>";

void vectors::setRotated(reference::AttentionSpec &spec) {
  spec.causal = true;
  spec.queryRotation = spec.keyRotation = makeRotation(64, 10000, false, 0);
}

Sizes vectors::decodeSizes(int64_t queries, int64_t keys, int64_t heads,
                           int64_t keyHeads, int64_t dim, int64_t valueDim) {
  Sizes sizes = headed(heads, keyHeads, dim, valueDim);
  sizes.queries = queries;
  sizes.keys = keys;
  return sizes;
}

std::vector<Operand> vectors::makePages(posenc_dtype dtype) {
  std::vector<Operand> operands = makeLengths(dtype);
  operands.push_back(
      {"tensor<?x7xi32>",
       makePositions(POSENC_I32, {2, 7},
                     {3, 0, 8, 1, 6, 2, 9, 4, 7, 99, 99, 99, 99, 99})});
  return operands;
}

void vectors::setPages(reference::AttentionSpec &spec) {
  spec.causal = true;
  spec.keyLengths = {101, 23};
  spec.blockTable = reference::BlockTable();
  spec.blockTable->pages = {3, 0, 8, 1, 6, 2, 9, 4, 7, 0, 0, 0, 0, 0};
  spec.blockTable->blocks = 7;
}

Sizes vectors::paged(int64_t queries) {
  Sizes sizes = sized(queries, 16);
  sizes.pages = 10;
  return sizes;
}

const char vectors::kPages[] =
    "lengths(%x0 : tensor<?xi64>) block_table(%x1 : tensor<?x7xi32>)";

void vectors::setSoftCap(reference::AttentionSpec &spec) {
  spec.score = [](double s, int64_t, int64_t, int64_t, int64_t) {
    return 5 * std::tanh(s / 5);
  };
}

void vectors::expectFaultIsCaught(const Case &c, const Fault &fault) {
  Inputs inputs = makeInputs(c, POSENC_F32);
  LoweredModule module(makeModule(c, POSENC_F32, inputs.operands),
                       mlir::posenc::Stage::Vector, /*vectorBytes=*/32);
  std::vector<runtime::Array> results =
      compileWithFault(module, fault).call("f", inputs.values());
  ASSERT_EQ(results.size(), 1u);
  reference::AttentionComparison comparison =
      compare(POSENC_F32, results.front(), compute(c, inputs));
  EXPECT_EQ(
      comparison.within(reference::defaultLimitRelative(reference::DType::F32)),
      fault.isControl())
      << comparison.relative;
}

std::string vectors::getCaseName(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}
