//===- AttentionPropertiesTest.cpp - exact properties of attention --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results that are known to the last bit without an oracle: those of integers,
// those of two equivalent ops, and those of scores that are far apart.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <cmath>
#include <cstring>
#include <functional>

using namespace posenc;
using namespace posenc::test;

namespace {

constexpr int64_t kDim = 64, kHeads = 4, kKeyHeads = 2;

/// MLIR of an attention op. Head counts and the head dimension are static,
/// other sizes dynamic, except for the number of queries with `oneQuery`.
struct Text {
  posenc_dtype dtype = POSENC_F32;
  int64_t keyHeads = kKeyHeads;
  bool oneQuery = false, ragged = false;
  std::string flags, groups, regions;
  /// Further arguments, each preceded by a comma; operations before the
  /// attention, and its operands `query` and `key`, which they may define.
  std::string arguments, operations, query = "%q", key = "%k";
};

std::string getType(const Text &t, bool isQuery) {
  std::string tokens = isQuery && t.oneQuery ? "1" : "?";
  return std::string("tensor<") + (t.ragged ? "" : "?x") + tokens + "x" +
         std::to_string(isQuery ? kHeads : t.keyHeads) + "x" +
         std::to_string(kDim) + "x" + posenc_dtype_name(t.dtype) + ">";
}

std::string getModule(const Text &t) {
  std::string q = getType(t, true), k = getType(t, false);
  std::string sizes = t.oneQuery || t.ragged ? "%n" : "%n, %m";
  return "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k + t.arguments +
         ") -> " + q + " {\n  %c0 = arith.constant 0 : index\n  %c1 = " +
         "arith.constant 1 : index\n  %n = tensor.dim %q, %c0 : " + q +
         "\n  %m = tensor.dim %q, %c1 : " + q + "\n  %o = tensor.empty(" +
         sizes + ") : " + q + "\n" + t.operations + "  %r = posenc.attention " +
         t.flags + " ins(" + t.query + ", " + t.key + ", %v : " + q + ", " + k +
         ", " + k + ")" + t.groups + " outs(%o : " + q + ")" + t.regions +
         "\n  return %r : " + q + "\n}\n";
}

runtime::Array call(const Text &t, Route route,
                    const std::vector<posenc_value> &inputs) {
  std::vector<runtime::Array> results =
      Kernel(getModule(t), route).call("f", inputs);
  return results.empty() ? runtime::Array() : std::move(results[0]);
}

std::vector<int64_t> getShape(int64_t batch, int64_t tokens, int64_t heads) {
  return {batch, tokens, heads, kDim};
}

/// Makes an array of rank 4 whose elements are `value` of their indices.
runtime::Array
make(posenc_dtype dtype, std::vector<int64_t> shape,
     const std::function<double(int64_t, int64_t, int64_t, int64_t)> &value) {
  runtime::Array array = makeRandom(dtype, shape, 1);
  size_t i = 0;
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t t = 0; t < shape[1]; ++t)
      for (int64_t h = 0; h < shape[2]; ++h)
        for (int64_t d = 0; d < shape[3]; ++d)
          reference::storeBits(
              getReferenceType(dtype), array.data(), i++,
              reference::encode(getReferenceType(dtype), value(b, t, h, d)));
  return array;
}

void expectSameBits(const runtime::Array &a, const runtime::Array &b,
                    const std::string &what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_GT(a.numElements(), 0u) << what;
  size_t size = posenc_dtype_size(a.dtype()), different = 0;
  for (size_t i = 0; i < a.numElements(); ++i)
    different += std::memcmp(a.dataAs<char>() + i * size,
                             b.dataAs<char>() + i * size, size) != 0;
  EXPECT_EQ(different, 0u) << what << ": of " << a.numElements();
}

/// Compares with a tolerance for rounding errors of f32.
void expectNear(const runtime::Array &a, const runtime::Array &b) {
  ASSERT_EQ(a.shape(), b.shape());
  for (size_t i = 0; i < a.numElements(); ++i)
    ASSERT_NEAR(a.dataAs<float>()[i], b.dataAs<float>()[i], 4e-6) << i;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

struct Variant {
  posenc_dtype dtype;
  Route route;
  bool oneQuery;
};

std::string getVariantName(const testing::TestParamInfo<Variant> &info) {
  return std::string(posenc_dtype_name(info.param.dtype)) +
         getName(info.param.route) + (info.param.oneQuery ? "OneQuery" : "");
}

std::vector<Variant> getVariants() {
  std::vector<Variant> variants;
  for (posenc_dtype dtype : {POSENC_F32, POSENC_F64, POSENC_F16, POSENC_BF16})
    for (Route route : {Route::Direct, Route::Linalg})
      for (bool oneQuery : {false, true})
        variants.push_back({dtype, route, oneQuery});
  return variants;
}

class AttentionIntegersTest : public testing::TestWithParam<Variant> {
protected:
  Text getText(const char *flags) const {
    Text text;
    text.dtype = GetParam().dtype;
    text.oneQuery = GetParam().oneQuery;
    text.flags = flags;
    return text;
  }
  int64_t queries = GetParam().oneQuery ? 1 : 59;
};

int64_t getInteger(int64_t b, int64_t t, int64_t h, int64_t d) {
  return (b * 7 + t * 31 + h * 17 + d * 13) % 201 - 100;
}

/// One score exceeds all others by so much that the result is the value of its
/// key.
TEST_P(AttentionIntegersTest, DominantKeyGivesItsValue) {
  constexpr int64_t keys = 61;
  posenc_dtype dtype = GetParam().dtype;
  auto getTarget = [&](int64_t b, int64_t t, int64_t h) {
    return (b * 5 + t * 11 + h * 3) % (t + keys - queries + 1);
  };
  runtime::Array q = make(dtype, getShape(2, queries, kHeads),
                          [&](int64_t b, int64_t t, int64_t h, int64_t d) {
                            return d == getTarget(b, t, h) ? 16 : 0;
                          });
  runtime::Array k = make(
      dtype, getShape(2, keys, kKeyHeads),
      [&](int64_t, int64_t t, int64_t, int64_t d) { return d == t ? 64 : -1; });
  runtime::Array v = make(dtype, getShape(2, keys, kKeyHeads), getInteger);
  runtime::Array expected = make(
      dtype, getShape(2, queries, kHeads),
      [&](int64_t b, int64_t t, int64_t h, int64_t d) {
        return getInteger(b, getTarget(b, t, h), h / (kHeads / kKeyHeads), d);
      });
  expectSameBits(call(getText("causal scale = 1.0"), GetParam().route,
                      {q.value(), k.value(), v.value()}),
                 expected, "values");
}

/// All scores are equal, so the result is the mean of the values, rounded once.
TEST_P(AttentionIntegersTest, EqualScoresGiveTheMean) {
  constexpr int64_t keys = 128;
  posenc_dtype dtype = GetParam().dtype;
  auto getValue = [](int64_t b, int64_t t, int64_t h, int64_t d) {
    return 64.0 * getInteger(b, t, h, d);
  };
  auto getZero = [](int64_t, int64_t, int64_t, int64_t) { return 0.0; };
  runtime::Array q = make(dtype, getShape(2, queries, kHeads), getZero);
  runtime::Array k = make(dtype, getShape(2, keys, kKeyHeads), getInteger);
  runtime::Array v = make(dtype, getShape(2, keys, kKeyHeads), getValue);
  runtime::Array expected =
      make(dtype, getShape(2, queries, kHeads),
           [&](int64_t b, int64_t, int64_t h, int64_t d) {
             double sum = 0;
             for (int64_t t = 0; t < keys; ++t)
               sum += getValue(b, t, h / (kHeads / kKeyHeads), d);
             return sum / keys;
           });
  expectSameBits(
      call(getText(""), GetParam().route, {q.value(), k.value(), v.value()}),
      expected, "means");
}

INSTANTIATE_TEST_SUITE_P(All, AttentionIntegersTest,
                         testing::ValuesIn(getVariants()), getVariantName);

//===----------------------------------------------------------------------===//
// Equivalent ops
//===----------------------------------------------------------------------===//

struct Tensors {
  runtime::Array q, k, v;
  explicit Tensors(int64_t queries, int64_t keys = 211, int64_t batch = 2)
      : q(makeRandom(POSENC_F32, getShape(batch, queries, kHeads), 1)),
        k(makeRandom(POSENC_F32, getShape(batch, keys, kKeyHeads), 2)),
        v(makeRandom(POSENC_F32, getShape(batch, keys, kKeyHeads), 3)) {}

  std::vector<posenc_value>
  with(std::initializer_list<const runtime::Array *> others) const {
    std::vector<posenc_value> values{q.value(), k.value(), v.value()};
    for (const runtime::Array *other : others)
      values.push_back(other->value());
    return values;
  }
};

/// Copies tokens of one sequence of a batch, as a batch of one sequence or as a
/// ragged tensor.
runtime::Array take(const runtime::Array &from, int64_t batch, int64_t first,
                    int64_t count, bool isRagged = false) {
  std::vector<int64_t> shape = from.shape();
  size_t row = shape[2] * shape[3];
  std::vector<int64_t> sizes{count, shape[2], shape[3]};
  if (!isRagged)
    sizes.insert(sizes.begin(), 1);
  runtime::Array result = makeRandom(POSENC_F32, sizes, 1);
  std::memcpy(result.data(),
              from.dataAs<float>() + (batch * shape[1] + first) * row,
              count * row * sizeof(float));
  return result;
}

/// The parameter says whether there is one query.
class AttentionEquivalenceTest : public testing::TestWithParam<bool> {
protected:
  int64_t queries = GetParam() ? 1 : 150;
  Text getText(std::string flags = "", std::string groups = "",
               std::string regions = "", std::string arguments = "") const {
    Text text;
    text.oneQuery = GetParam();
    text.flags = std::move(flags);
    text.groups = std::move(groups);
    text.regions = std::move(regions);
    text.arguments = std::move(arguments);
    return text;
  }
};

TEST_P(AttentionEquivalenceTest, FusedAndSeparateRotations) {
  const std::string frequencies =
      "#posenc.frequencies<dim = 48, base = 10000.0>";
  const std::string type = "tensor<?x?xi64>";
  Text inside = getText(
      "causal query_rotation = <pairing = half, frequencies = " + frequencies +
          ", offset = 8> key_rotation = <pairing = half, frequencies = " +
          frequencies + ", offset = 8>",
      " query_positions(%p : " + type + ") key_positions(%s : " + type + ")",
      "", ", %p: " + type + ", %s: " + type);
  Text before = getText("causal");
  before.arguments = inside.arguments;
  before.query = "%a";
  before.key = "%b";
  for (bool isQuery : {true, false}) {
    std::string from = isQuery ? "%q" : "%k", to = isQuery ? "%a" : "%b";
    std::string tensor = getType(before, isQuery);
    before.operations += "  " + to + " = posenc.rope half " + frequencies +
                         " ins(" + from + " : " + tensor + ") positions(" +
                         (isQuery ? "%p" : "%s") + " : " + type +
                         ") dims = [0, 1] offset = 8 outs(" + from + " : " +
                         tensor + ")\n";
  }
  Tensors t(queries, 211);
  runtime::Array p =
      makePositions(POSENC_I64, {2, queries}, hardPositions(2 * queries));
  runtime::Array s = makePositions(POSENC_I64, {2, 211}, hardPositions(422));
  expectSameBits(call(inside, Route::Direct, t.with({&p, &s})),
                 call(before, Route::Direct, t.with({&p, &s})), "rotated");
}

TEST_P(AttentionEquivalenceTest, CausalByFlagWindowRegionAndMask) {
  Tensors t(queries);
  std::vector<int64_t> bits;
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < 211; ++j)
      bits.push_back(j <= i + 211 - queries);
  runtime::Array ones = makePositions(POSENC_I32, {1, 1, queries, 211}, bits);
  runtime::Array added = makeRandom(POSENC_F32, {1, 1, queries, 211}, 1);
  for (size_t i = 0; i < bits.size(); ++i)
    added.dataAs<float>()[i] = bits[i] ? 0 : -INFINITY;
  const std::string from = "tensor<1x1x?x?xi32>", to = "tensor<1x1x?x?xi1>";
  Text byMask =
      getText("", " mask(%mask : " + to + ")", "", ", %bits: " + from);
  byMask.operations =
      "  %mask = arith.trunci %bits : " + from + " to " + to + "\n";
  const std::string where = R"( where(%b, %h, %i, %j) {
      %is = arith.cmpi sle, %j, %i : index
      posenc.yield %is : i1
    })";
  runtime::Array expected = call(getText("causal"), Route::Direct, t.with({}));
  expectSameBits(call(getText("window_right = 0"), Route::Direct, t.with({})),
                 expected, "window");
  // The decode kernel adds in another order with regions and masks.
  if (GetParam())
    return;
  expectSameBits(call(getText("", "", where), Route::Direct, t.with({})),
                 expected, "region");
  expectSameBits(call(byMask, Route::Direct, t.with({&ones})), expected,
                 "boolean mask");
  // With an additive mask, scores may be scaled at another point, which rounds
  // differently.
  runtime::Array sums = call(getText("", " mask(%a : tensor<1x1x?x?xf32>)", "",
                                     ", %a: tensor<1x1x?x?xf32>"),
                             Route::Direct, t.with({&added}));
  expectNear(sums, expected);
}

TEST_P(AttentionEquivalenceTest, PagedAndContiguousKeys) {
  constexpr int64_t slots = 16, blocks = 14, keys = slots * blocks;
  Tensors t(queries, keys);
  runtime::Array lengths = makePositions(POSENC_I64, {2}, {211, 97});
  // Key `j` of sequence `b` is in page `27 - (b * 14 + j / 16)`.
  std::vector<int64_t> table;
  for (int64_t i = 0; i < 2 * blocks; ++i)
    table.push_back(2 * blocks - 1 - i);
  runtime::Array pages = makePositions(POSENC_I32, {2, blocks}, table);
  auto scatter = [&](const runtime::Array &from) {
    runtime::Array to =
        makeRandom(POSENC_F32, getShape(2 * blocks, slots, kKeyHeads), 9);
    size_t page = slots * kKeyHeads * kDim;
    for (int64_t i = 0; i < 2 * blocks; ++i)
      std::memcpy(to.dataAs<float>() + table[i] * page,
                  from.dataAs<float>() + i * page, page * sizeof(float));
    return to;
  };
  runtime::Array k = scatter(t.k), v = scatter(t.v);
  const std::string group = " lengths(%l : tensor<?xi64>)";
  Text contiguous = getText("causal", group, "", ", %l: tensor<?xi64>");
  Text paged = getText("causal", group + " block_table(%t : tensor<?x?xi32>)",
                       "", ", %l: tensor<?xi64>, %t: tensor<?x?xi32>");
  runtime::Array expected = call(contiguous, Route::Direct, t.with({&lengths}));
  expectSameBits(
      call(paged, Route::Direct,
           {t.q.value(), k.value(), v.value(), lengths.value(), pages.value()}),
      expected, "pages");
  // Each sequence alone, without the keys beyond its length.
  for (int64_t b = 0; b < 2; ++b) {
    int64_t length = lengths.dataAs<int64_t>()[b];
    runtime::Array q = take(t.q, b, 0, queries);
    runtime::Array ownKeys = take(t.k, b, 0, length);
    runtime::Array ownValues = take(t.v, b, 0, length);
    expectSameBits(call(getText("causal"), Route::Direct,
                        {q.value(), ownKeys.value(), ownValues.value()}),
                   take(expected, b, 0, queries), "lengths");
  }
}

TEST_P(AttentionEquivalenceTest, SharedAndRepeatedKeyHeads) {
  Tensors t(queries);
  auto repeat = [](const runtime::Array &from) {
    runtime::Array to = makeRandom(POSENC_F32, getShape(2, 211, kHeads), 9);
    for (int64_t row = 0; row < 2 * 211 * kHeads; ++row)
      std::memcpy(to.dataAs<float>() + row * kDim,
                  from.dataAs<float>() + row / (kHeads / kKeyHeads) * kDim,
                  kDim * sizeof(float));
    return to;
  };
  runtime::Array k = repeat(t.k), v = repeat(t.v);
  Text copies = getText("causal");
  copies.keyHeads = kHeads;
  runtime::Array shared = call(getText("causal"), Route::Direct, t.with({}));
  runtime::Array own =
      call(copies, Route::Direct, {t.q.value(), k.value(), v.value()});
  // The order of additions in the decode kernel depends on the GQA group size.
  if (GetParam())
    expectNear(own, shared);
  else
    expectSameBits(own, shared, "heads");
}

INSTANTIATE_TEST_SUITE_P(All, AttentionEquivalenceTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool> &info) {
                           return info.param ? "OneQuery" : "Queries";
                         });

TEST(AttentionPropertiesTest, RaggedSequencesMatchSingleOnes) {
  constexpr int64_t total = 300;
  const std::vector<int64_t> starts{0, 7, 7, 263, 264, 290};
  Tensors t(total, total, 1);
  runtime::Array q = take(t.q, 0, 0, total, true);
  runtime::Array k = take(t.k, 0, 0, total, true);
  runtime::Array v = take(t.v, 0, 0, total, true);
  runtime::Array list = makePositions(POSENC_I32, {6}, starts);
  Text ragged;
  ragged.ragged = true;
  ragged.flags = "causal";
  ragged.arguments = ", %s: tensor<?xi32>";
  ragged.groups = " cu_seqlens(%s, %s : tensor<?xi32>, tensor<?xi32>)";
  for (Route route : {Route::Direct, Route::Linalg}) {
    runtime::Array result =
        call(ragged, route, {q.value(), k.value(), v.value(), list.value()});
    ASSERT_EQ(result.shape(), q.shape());
    size_t row = kHeads * kDim;
    for (size_t b = 0; b + 1 < starts.size(); ++b) {
      int64_t count = starts[b + 1] - starts[b];
      if (count == 0)
        continue;
      Text alone;
      alone.flags = "causal";
      runtime::Array ownQueries = take(t.q, 0, starts[b], count);
      runtime::Array ownKeys = take(t.k, 0, starts[b], count);
      runtime::Array ownValues = take(t.v, 0, starts[b], count);
      runtime::Array own =
          call(alone, route,
               {ownQueries.value(), ownKeys.value(), ownValues.value()});
      SCOPED_TRACE(std::string(getName(route)) + " sequence " +
                   std::to_string(b));
      runtime::Array mine = makeRandom(POSENC_F32, own.shape(), 1);
      std::memcpy(mine.data(), result.dataAs<float>() + starts[b] * row,
                  mine.sizeInBytes());
      // With few queries a sequence alone may use another kernel, which adds in
      // another order.
      if (route == Route::Direct && count <= 32)
        expectNear(mine, own);
      else
        expectSameBits(mine, own, "ragged");
    }
    // Tokens after the last sequence have zero results.
    for (size_t i = starts.back() * row; i < result.numElements(); ++i)
      ASSERT_EQ(result.dataAs<float>()[i], 0.0f) << i;
  }
}

//===----------------------------------------------------------------------===//
// Scores that are far apart
//===----------------------------------------------------------------------===//

/// Scores from -1e4 to 1e4: exponentials neither overflow nor are all zero, in
/// rising and in falling order of scores.
/// Copies `count` tokens from `first` on of an array with one sequence.
runtime::Array slice(const runtime::Array &array, int64_t first,
                     int64_t count) {
  std::vector<int64_t> shape = array.shape();
  shape[1] = count;
  runtime::Array part = makeRandom(array.dtype(), shape, 1);
  size_t bytes = posenc_dtype_size(array.dtype()) * shape[2] * shape[3];
  std::memcpy(part.data(), array.dataAs<char>() + first * bytes, count * bytes);
  return part;
}

/// The bits of 16 queries with AMX are those of one, two or five of them, which
/// see the keys up to their own. Keys are divided into KV splits.
void expectSameBitsOfFew(const Kernel &kernel, const runtime::Array &q,
                         const runtime::Array &k, const runtime::Array &v,
                         const posenc_value *extra, int64_t fewest) {
  constexpr int64_t queries = 16;
  int64_t keys = k.shape()[1];
  auto call = [&](int64_t first, int64_t count) {
    runtime::Array some = slice(q, first, count);
    int64_t seen = keys - queries + first + count;
    runtime::Array someKeys = slice(k, 0, seen), someValues = slice(v, 0, seen);
    std::vector<posenc_value> inputs{some.value(), someKeys.value(),
                                     someValues.value()};
    if (extra)
      inputs.push_back(*extra);
    return std::move(kernel.call("f", inputs)[0]);
  };
  runtime::Array all = call(0, queries);
  for (int64_t count : {1, 2, 5})
    for (int64_t first : {0, 3, 11})
      if (count >= fewest)
        expectSameBits(call(first, count), slice(all, first, count), "few");
  // Control: other queries have other bits.
  EXPECT_NE(std::memcmp(call(0, fewest).data(), slice(all, 1, fewest).data(),
                        fewest * kDim),
            0);
}

TEST(AttentionPropertiesTest, StackedAMXStepsDoNotDependOnOtherRows) {
  constexpr int64_t keys = 700;
  for (auto [keyHeads, fewest] : {std::pair(1, 1), std::pair(2, 2)}) {
    Text text;
    text.dtype = POSENC_BF16, text.keyHeads = keyHeads;
    text.flags = "causal scale = 3.0 window_left = 350";
    text.arguments = ", %x: tensor<4xf32>";
    text.groups = " sinks(%x : tensor<4xf32>)";
    runtime::Array sink = makeRandom(POSENC_F32, {4}, 5);
    posenc_value extra = sink.value();
    expectSameBitsOfFew(Kernel(getModule(text), Route::AMX),
                        makeRandom(POSENC_BF16, getShape(1, 16, kHeads), 1),
                        makeRandom(POSENC_BF16, getShape(1, keys, keyHeads), 2),
                        makeRandom(POSENC_BF16, getShape(1, keys, keyHeads), 3),
                        &extra, fewest);
  }
}

/// The bits of a query with AMX do not depend on the queries of its tile or on
/// how queries are divided among calls, nor on keys that it does not see.
TEST(AttentionPropertiesTest, AMXStepsDoNotDependOnOtherRows) {
  constexpr int64_t queries = 100, keys = 250, chunk = 37, row = 70;
  constexpr posenc_dtype dtype = POSENC_BF16;
  Text plain;
  plain.dtype = dtype;
  plain.flags = "causal scale = 3.0";
  Text window = plain, masked = plain, sinks = plain;
  window.flags += " window_left = 40";
  masked.arguments = ", %x: tensor<1x1x1x?xf32>";
  masked.groups = " mask(%x : tensor<1x1x1x?xf32>)";
  sinks.arguments = ", %x: tensor<4xf32>";
  sinks.groups = " sinks(%x : tensor<4xf32>)";
  runtime::Array mask = makeRandom(POSENC_F32, {1, 1, 1, keys}, 4);
  runtime::Array sink = makeRandom(POSENC_F32, {4}, 5);
  for (auto [text, extra] :
       {std::pair<Text, const runtime::Array *>(plain, nullptr),
        {window, nullptr},
        {masked, &mask},
        {sinks, &sink}}) {
    SCOPED_TRACE(text.flags + text.groups);
    Kernel kernel(getModule(text), Route::AMX);
    runtime::Array q = makeRandom(dtype, getShape(1, queries, kHeads), 1);
    runtime::Array k = makeRandom(dtype, getShape(1, keys, kKeyHeads), 2);
    runtime::Array v = makeRandom(dtype, getShape(1, keys, kKeyHeads), 3);
    auto call = [&, extra = extra](const runtime::Array &some) {
      std::vector<posenc_value> inputs{some.value(), k.value(), v.value()};
      if (extra)
        inputs.push_back(extra->value());
      return std::move(kernel.call("f", inputs)[0]);
    };
    runtime::Array all = call(q);
    expectSameBits(call(slice(q, queries - chunk, chunk)),
                   slice(all, queries - chunk, chunk), "chunk");
    // Other queries whose scores raise the offsets of their rows.
    runtime::Array others =
        make(dtype, q.shape(), [](int64_t, int64_t t, int64_t h, int64_t d) {
          return 20 * std::sin(double(7 * t + 3 * h + d));
        });
    size_t bytes = posenc_dtype_size(dtype) * kHeads * kDim;
    std::memcpy(others.dataAs<char>() + row * bytes,
                q.dataAs<char>() + row * bytes, bytes);
    expectSameBits(slice(call(others), row, 1), slice(all, row, 1),
                   "other queries");
    // Control: the bits of another row change.
    EXPECT_NE(std::memcmp(slice(call(others), row + 1, 1).data(),
                          slice(all, row + 1, 1).data(), bytes),
              0);
    // The last token is visible to the last query only.
    for (runtime::Array *tensor : {&k, &v})
      for (int64_t i = 1; i <= kKeyHeads * kDim; ++i)
        reference::storeBits(
            getReferenceType(dtype), tensor->data(), tensor->numElements() - i,
            reference::encode(getReferenceType(dtype),
                              i % 2 ? std::nan("") : HUGE_VAL));
    runtime::Array spoiled = call(q);
    expectSameBits(slice(spoiled, 0, queries - 1), slice(all, 0, queries - 1),
                   "unseen NaN");
    EXPECT_NE(std::memcmp(slice(spoiled, queries - 1, 1).data(),
                          slice(all, queries - 1, 1).data(), bytes),
              0);
  }
}

/// With values of 1, the output is the share of the keys beside the sink. It is
/// that of weights which are not rounded: the error of a few rounded ones,
/// which are equal here, is 2^-9, and would show where the share is near the
/// middle of two numbers.
TEST(AttentionPropertiesTest, SinksAreComparedWithExactWeights) {
  constexpr int64_t queries = 60, keys = 20;
  constexpr double scale = 0.125, step = 0.125;
  Text text;
  text.dtype = POSENC_BF16;
  text.arguments = ", %x: tensor<4xf32>";
  text.groups = " sinks(%x : tensor<4xf32>)";
  runtime::Array sink = makeRandom(POSENC_F32, {kHeads}, 5);
  runtime::Array q = make(POSENC_BF16, getShape(1, queries, kHeads),
                          [](int64_t, int64_t t, int64_t h, int64_t d) {
                            return d == 0 ? step * (1 + t + 60 * h) : 0;
                          });
  // All keys but the first have the same score.
  runtime::Array k = make(POSENC_BF16, getShape(1, keys, kKeyHeads),
                          [](int64_t, int64_t j, int64_t, int64_t d) {
                            return d == 0 && j > 0 ? -1 : 0;
                          });
  runtime::Array v = make(POSENC_BF16, k.shape(),
                          [](int64_t, int64_t, int64_t, int64_t) { return 1; });
  reference::DType type = getReferenceType(POSENC_BF16);
  auto round = [&](double x) {
    return static_cast<double>(
        reference::decode(type, reference::encode(type, x)));
  };
  for (Route route : {Route::BF16Dots, Route::AMX}) {
    Kernel kernel(getModule(text), route);
    for (int64_t count : {int64_t(9), queries}) {
      size_t faults = 0;
      runtime::Array some = slice(q, 0, count);
      runtime::Array output = std::move(
          kernel.call("f", {some.value(), k.value(), v.value(), sink.value()})
              .front());
      for (int64_t t = 0; t < count; ++t)
        for (int64_t h = 0; h < kHeads; ++h) {
          double weight = std::exp(-scale * step * (1 + t + 60 * h));
          double other = std::exp(sink.dataAs<float>()[h]);
          auto getShare = [&](double x) {
            double sum = 1 + (keys - 1) * x;
            return sum / (sum + other);
          };
          double share = getShare(weight);
          double bound = std::ldexp(1, std::ilogb(share) - 8) + 1e-5 * share;
          double got = static_cast<double>(reference::decode(
              type, reference::loadBits(type, output.data(),
                                        (t * kHeads + h) * kDim)));
          EXPECT_LE(std::fabs(got - share), bound)
              << "query " << t << ", head " << h;
          double wrong = round(getShare(round(weight)));
          faults += std::fabs(wrong - share) > bound;
        }
      // Control: rounded weights exceed the bound.
      EXPECT_GT(faults, 0u);
    }
  }
}

TEST(AttentionPropertiesTest, LargeScoresDoNotOverflow) {
  constexpr int64_t keys = 211;
  for (Route route : {Route::Direct, Route::Linalg})
    for (bool oneQuery : {false, true})
      for (bool isRising : {false, true}) {
        int64_t queries = oneQuery ? 1 : 37;
        runtime::Array q = make(POSENC_F32, getShape(1, queries, kHeads),
                                [](int64_t, int64_t, int64_t h, int64_t) {
                                  return h % 2 ? -1 : 1;
                                });
        auto getScore = [&](int64_t t) {
          double part = double(isRising ? t : keys - 1 - t) / (keys - 1);
          return std::round(20000 * part - 10000);
        };
        runtime::Array k = make(POSENC_F32, getShape(1, keys, kKeyHeads),
                                [&](int64_t, int64_t t, int64_t, int64_t d) {
                                  return d == 0 ? getScore(t) : 0;
                                });
        runtime::Array v =
            make(POSENC_F32, getShape(1, keys, kKeyHeads), getInteger);
        Text text;
        text.oneQuery = oneQuery;
        text.flags = "scale = 1.0";
        runtime::Array result =
            call(text, route, {q.value(), k.value(), v.value()});
        runtime::Array expected =
            make(POSENC_F32, getShape(1, queries, kHeads),
                 [&](int64_t, int64_t, int64_t h, int64_t d) {
                   bool isLast = isRising == (h % 2 == 0);
                   return getInteger(0, isLast ? keys - 1 : 0,
                                     h / (kHeads / kKeyHeads), d);
                 });
        expectSameBits(result, expected,
                       std::string(getName(route)) +
                           (oneQuery ? ", one query" : "") +
                           (isRising ? ", rising" : ", falling"));
      }
}

//===----------------------------------------------------------------------===//
// NaNs
//===----------------------------------------------------------------------===//

/// NaNs of any sign and payload reach the results.
TEST(AttentionPropertiesTest, NaNsPropagate) {
  for (Route route : {Route::Direct, Route::Linalg})
    for (bool oneQuery : {false, true})
      for (uint32_t bits : {0x7fc00000u, 0x7f800001u, 0x7fffffffu, 0xffffffffu,
                            0xffc001ffu, 0x7fff8000u}) {
        int64_t queries = oneQuery ? 1 : 19;
        runtime::Array q =
            make(POSENC_F32, getShape(1, queries, kHeads), getInteger);
        runtime::Array k =
            makeRandom(POSENC_F32, getShape(1, 53, kKeyHeads), 1);
        runtime::Array v =
            makeRandom(POSENC_F32, getShape(1, 53, kKeyHeads), 2);
        // The NaN is in a key that every query sees.
        for (int64_t head = 0; head < kKeyHeads; ++head)
          std::memcpy(k.dataAs<float>() + (7 * kKeyHeads + head) * kDim + 3,
                      &bits, sizeof(bits));
        Text text;
        text.oneQuery = oneQuery;
        runtime::Array result =
            call(text, route, {q.value(), k.value(), v.value()});
        size_t count = 0;
        for (size_t i = 0; i < result.numElements(); ++i)
          count += std::isnan(result.dataAs<float>()[i]);
        EXPECT_EQ(count, result.numElements())
            << getName(route) << (oneQuery ? ", one query, " : ", ") << std::hex
            << bits;
      }
}

//===----------------------------------------------------------------------===//
// Divisions in regions
//===----------------------------------------------------------------------===//

/// A division by a constant in a region is not replaced by a product with its
/// rounded reciprocal: 41 times the f32 nearest to 1/41 is less than 1.
TEST(AttentionPropertiesTest, DivisionsAreNotReciprocalProducts) {
  constexpr int64_t tokens = 97;
  auto getRegions = [](bool byFloats) {
    std::string block = byFloats ? R"(
      %f = arith.sitofp %x : i32 to f32
      %c = arith.constant 41.0 : f32
      %p = arith.divf %f, %c : f32
      %g = math.floor %p : f32
      %e = arith.sitofp %y : i32 to f32
      %d = arith.divf %e, %c : f32
      %h1 = math.floor %d : f32
      %is = arith.cmpf oeq, %g, %h1 : f32)"
                                 : R"(
      %c = arith.constant 41 : i32
      %g = arith.divsi %x, %c : i32
      %h1 = arith.divsi %y, %c : i32
      %is = arith.cmpi eq, %g, %h1 : i32)";
    return " where(%b, %h, %i, %j) {\n      %x = arith.index_cast %i : index "
           "to i32\n      %y = arith.index_cast %j : index to i32" +
           block + "\n      posenc.yield %is : i1\n    }";
  };
  runtime::Array q = makeRandom(POSENC_F32, getShape(1, tokens, kHeads), 1);
  runtime::Array k = makeRandom(POSENC_F32, getShape(1, tokens, kKeyHeads), 2);
  runtime::Array v = makeRandom(POSENC_F32, getShape(1, tokens, kKeyHeads), 3);
  Text floats, integers;
  floats.regions = getRegions(true);
  integers.regions = getRegions(false);
  expectSameBits(
      call(floats, Route::Direct, {q.value(), k.value(), v.value()}),
      call(integers, Route::Direct, {q.value(), k.value(), v.value()}),
      "where");
}

} // namespace
