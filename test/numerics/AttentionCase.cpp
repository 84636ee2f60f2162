//===- AttentionCase.cpp - attention cases and their data -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"

#include "posenc/Reference/Bias.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>

using namespace posenc;
using namespace posenc::test;

static constexpr int64_t kPageSlots = 5;
static constexpr double kCap = 2.5, kEps = 1e-5, kBase = 10000;
static constexpr int64_t kRotaryDim = 8, kRotaryOffset = 4;

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

static std::string shapedType(const std::vector<std::string> &sizes,
                              const std::string &element) {
  std::string type = "tensor<";
  for (const std::string &size : sizes)
    type += size + "x";
  return type + element + ">";
}

/// Returns the shape of queries, keys or values in MLIR; `?` for a dynamic
/// size.
static std::vector<std::string> getHeadSizes(const AttentionCase &c,
                                             bool headMajor, bool ragged,
                                             int64_t heads, int64_t dim,
                                             int64_t staticTokens = 0) {
  std::string count = c.dynamicHeads ? "?" : std::to_string(heads);
  std::string tokens = staticTokens ? std::to_string(staticTokens) : "?";
  std::vector<std::string> sizes;
  if (!ragged)
    sizes.push_back("?");
  sizes.push_back(headMajor ? count : tokens);
  sizes.push_back(headMajor ? tokens : count);
  sizes.push_back(std::to_string(dim));
  return sizes;
}

static std::string getRotation(const AttentionCase &c, Angles angles) {
  std::string pairs = std::to_string(kRotaryDim / 2);
  return std::string("<pairing = ") + (c.interleaved ? "interleaved" : "half") +
         ", frequencies = #posenc.frequencies<dim = " +
         std::to_string(kRotaryDim) + ", base = " + std::to_string(kBase) +
         ">, offset = " + std::to_string(kRotaryOffset) +
         (angles == Angles::Axes ? ", axes = #posenc.axes<contiguous, [1, 3]>>"
                                 : ">");
}

std::string test::getModule(const AttentionCase &c) {
  std::string dtype = posenc_dtype_name(c.dtype);
  std::string sum = c.dtype == POSENC_F64 ? "f64" : "f32";
  bool ragged = c.form == Form::Ragged || c.form == Form::RaggedQueries;
  bool raggedKeys = c.form == Form::Ragged;
  std::vector<std::string> outputSizes = getHeadSizes(
      c, c.queryHeadMajor, ragged, c.heads, c.valueDim, c.staticQueries);
  std::string output = shapedType(outputSizes, dtype);
  std::string logSums =
      shapedType({outputSizes.begin(), outputSizes.end() - 1}, sum);
  std::string q = shapedType(getHeadSizes(c, c.queryHeadMajor, ragged, c.heads,
                                          c.dim, c.staticQueries),
                             dtype);
  std::string k = shapedType(
      getHeadSizes(c, c.keyHeadMajor, raggedKeys, c.keyHeads, c.dim), dtype);
  std::string v = shapedType(
      getHeadSizes(c, c.keyHeadMajor, raggedKeys, c.keyHeads, c.valueDim),
      dtype);

  std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v;
  std::string flags, groups, body;
  auto group = [&](const std::string &name, const std::string &type) {
    arguments += ", %" + name + ": " + type;
    groups += " " + name + "(%" + name + " : " + type + ")";
  };
  if (c.causal)
    flags += " causal";
  if (c.left)
    flags += " window_left = " + std::to_string(*c.left);
  if (c.right)
    flags += " window_right = " + std::to_string(*c.right);
  if (c.scale)
    flags += " scale = " + std::to_string(*c.scale);
  if (c.norms)
    flags += std::string(" norm_eps = 1.0e-5") +
             (c.normsPlusOne ? " norm_offset = 1" : "");
  if (c.queryHeadMajor)
    flags += " query_layout = head_major";
  if (c.keyHeadMajor)
    flags += " key_layout = head_major";
  auto rotate = [&](const std::string &name, Angles angles, bool isRagged) {
    if (angles == Angles::None)
      return;
    flags += " " + name + "_rotation = " + getRotation(c, angles);
    std::vector<std::string> sizes(isRagged ? 1 : 2, "?");
    if (angles == Angles::Axes)
      sizes.insert(sizes.begin(), "2");
    if (angles != Angles::TokenIndices)
      group(name + "_positions", shapedType(sizes, "i64"));
  };
  rotate("query", c.queryAngles, ragged);
  rotate("key", c.keyAngles, raggedKeys);
  if (c.norms) {
    auto addNorm = [&](const std::string &name, int64_t heads) {
      int64_t size = c.normsOfAllHeads ? heads * c.dim : c.dim;
      group(name, shapedType({std::to_string(size)}, dtype));
    };
    addNorm("query_norm", c.heads);
    addNorm("key_norm", c.keyHeads);
  }
  if (c.lengths || c.form == Form::RaggedQueries || c.form == Form::Paged)
    group("lengths", "tensor<?xi64>");
  if (ragged) {
    arguments += ", %starts: tensor<?xi32>";
    groups += raggedKeys ? " cu_seqlens(%starts, %key_starts : tensor<?xi32>, "
                           "tensor<?xi32>)"
                         : " cu_seqlens(%starts : tensor<?xi32>)";
    if (raggedKeys)
      arguments += ", %key_starts: tensor<?xi32>";
  }
  if (c.form == Form::Paged)
    group("block_table", "tensor<?x?xi32>");
  switch (c.mask) {
  case Mask::None:
    break;
  case Mask::Added:
    group("mask", shapedType({"?", std::to_string(c.heads), "?", "?"}, dtype));
    break;
  case Mask::AddedToAll:
  case Mask::AddedLowest:
    group("mask", shapedType({"1", "1", "?", "?"}, dtype));
    break;
  case Mask::Boolean:
  case Mask::BooleanByKey: {
    std::vector<std::string> sizes{"?", "1", "?", "?"};
    if (c.mask == Mask::BooleanByKey)
      sizes = {"?", "1", "1", "?"};
    std::string from = shapedType(sizes, "i32"), to = shapedType(sizes, "i1");
    arguments += ", %bits: " + from;
    body += "  %mask = arith.trunci %bits : " + from + " to " + to + "\n";
    groups += " mask(%mask : " + to + ")";
    break;
  }
  }
  if (c.sinks)
    group("sinks",
          shapedType({c.dynamicHeads ? "?" : std::to_string(c.heads)}, sum));
  if (c.t5)
    arguments +=
        ", %table: " + shapedType({"32", std::to_string(c.heads)}, sum);
  if (c.document)
    arguments += ", %document: tensor<?xi32>";

  // Destinations.
  std::string sizes;
  for (size_t dim = 0; dim < outputSizes.size(); ++dim) {
    std::string number = std::to_string(dim);
    body += "  %c" + number + " = arith.constant " + number + " : index\n";
    if (outputSizes[dim] != "?")
      continue;
    body +=
        "  %d" + number + " = tensor.dim %q, %c" + number + " : " + q + "\n";
    sizes += (sizes.empty() ? "%d" : ", %d") + number;
  }
  body += "  %o = tensor.empty(" + sizes + ") : " + output + "\n";
  std::string results = "%r", outs = "%o : " + output, types = output;
  if (c.logSums) {
    body += "  %l = tensor.empty(" + sizes + ") : " + logSums + "\n";
    results = "%r, %s";
    outs = "%o, %l : " + output + ", " + logSums;
    types += ", " + logSums;
  }

  std::string regions;
  if (c.softCap || c.alibi || c.t5) {
    regions +=
        " score(%x0, %b, %h, %i, %j) {\n    %y0 = arith.addf %x0, %zero : " +
        sum + "\n";
    body += "  %zero = arith.constant 0.0 : " + sum + "\n";
    int last = 0;
    auto next = [&] { return "%y" + std::to_string(++last); };
    auto current = [&] { return "%y" + std::to_string(last); };
    if (c.softCap) {
      body += "  %cap = arith.constant 2.5 : " + sum + "\n";
      regions += "    %ratio = arith.divf " + current() + ", %cap : " + sum +
                 "\n    %tanh = math.tanh %ratio : " + sum + "\n";
      regions += "    " + next() + " = arith.mulf %tanh, %cap : " + sum + "\n";
    }
    if (c.alibi) {
      regions += "    %alibi = posenc.alibi(%h, %i, %j) heads = " +
                 std::to_string(c.heads) + " : " + sum + "\n";
      std::string before = current();
      regions += "    " + next() + " = arith.addf " + before +
                 ", %alibi : " + sum + "\n";
    }
    if (c.t5) {
      regions += "    %relative = arith.subi %j, %i : index\n    %bucket = "
                 "posenc.t5_bucket bidirectional %relative : index\n    %bias "
                 "= tensor.extract %table[%bucket, %h] : " +
                 shapedType({"32", std::to_string(c.heads)}, sum) + "\n";
      std::string before = current();
      regions += "    " + next() + " = arith.addf " + before +
                 ", %bias : " + sum + "\n";
    }
    regions += "    posenc.yield " + current() + " : " + sum + "\n  }";
  }
  if (c.where || c.document) {
    regions += " where(%b, %h, %i, %j) {\n";
    if (c.where) {
      body += "  %three = arith.constant 3 : index\n";
      regions += "    %n0 = arith.addi %b, %h : index\n"
                 "    %n1 = arith.addi %n0, %i : index\n"
                 "    %n2 = arith.addi %n1, %j : index\n"
                 "    %n3 = arith.remsi %n2, %three : index\n"
                 "    %keep = arith.cmpi ne, %n3, %c0 : index\n";
    }
    if (c.document) {
      body += "  %none = arith.constant 0 : i32\n";
      regions += "    %n4 = tensor.extract %document[%j] : tensor<?xi32>\n"
                 "    %seen = arith.cmpi ne, %n4, %none : i32\n";
    }
    if (c.where && c.document)
      regions += "    %both = arith.andi %keep, %seen : i1\n";
    regions += std::string("    posenc.yield ") +
               (c.where && c.document ? "%both"
                : c.where             ? "%keep"
                                      : "%seen") +
               " : i1\n  }";
  }
  return "func.func @f(" + arguments + ") -> (" + types + ") {\n" + body +
         "  " + results + " = posenc.attention" + flags +
         " ins(%q, %k, %v : " + q + ", " + k + ", " + v + ")" + groups +
         " outs(" + outs + ")" + regions + "\n  return " + results + " : " +
         types + "\n}\n";
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

runtime::Array &AttentionData::add(runtime::Array array) {
  inputs.push_back(std::move(array));
  return inputs.back();
}

static runtime::Array makeI32(std::vector<int64_t> shape,
                              const std::vector<int64_t> &values) {
  return makePositions(POSENC_I32, std::move(shape), values);
}

static std::vector<int64_t> getHeadShape(bool headMajor, bool ragged,
                                         int64_t batch, int64_t tokens,
                                         int64_t heads, int64_t dim) {
  std::vector<int64_t> shape;
  if (!ragged)
    shape.push_back(batch);
  shape.push_back(headMajor ? heads : tokens);
  shape.push_back(headMajor ? tokens : heads);
  shape.push_back(dim);
  return shape;
}

reference::Rotation AttentionData::addRotation(Angles angles,
                                               std::vector<int64_t> shape) {
  reference::Rotation rotation;
  rotation.frequencies.dim = kRotaryDim;
  rotation.frequencies.base = kBase;
  rotation.interleaved = c.interleaved;
  rotation.windowOffset = kRotaryOffset;
  if (angles == Angles::Axes) {
    rotation.axes.kind = reference::AxesKind::Sections;
    rotation.axes.sections = {1, 3};
    shape.insert(shape.begin(), 2);
  }
  if (angles == Angles::TokenIndices)
    return rotation;
  int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1},
                                  std::multiplies<>());
  std::vector<int64_t> positions = hardPositions(count);
  add(makePositions(POSENC_I64, shape, positions));
  rotation.positions = positions;
  return rotation;
}

/// Draws cu_seqlens that divide `total` tokens into ragged sequences. The last
/// tokens may belong to none of them.
static std::vector<int64_t> split(int64_t total, int64_t numSequences,
                                  std::mt19937_64 &generator) {
  int64_t end = total - static_cast<int64_t>(generator() % (total / 4 + 1));
  std::vector<int64_t> starts{0};
  for (int64_t i = 1; i < numSequences; ++i)
    starts.push_back(static_cast<int64_t>(generator() % (end + 1)));
  std::sort(starts.begin(), starts.end());
  if (numSequences > 0)
    starts.push_back(end);
  return starts;
}

AttentionData::AttentionData(const AttentionCase &given, AttentionSizes sizes,
                             uint64_t seed)
    : c(given) {
  std::mt19937_64 generator(seed);
  int64_t batch = sizes.batch, queries = sizes.queries, keys = sizes.keys;
  bool ragged = c.form == Form::Ragged || c.form == Form::RaggedQueries;
  bool raggedKeys = c.form == Form::Ragged, paged = c.form == Form::Paged;
  // The arrays must not move while there are references to them.
  inputs.reserve(20);

  int64_t blocks = (keys + kPageSlots - 1) / kPageSlots;
  int64_t pages = blocks * batch + 2;
  int64_t rows = paged ? kPageSlots : raggedKeys ? keys * batch : keys;
  int64_t keyBatch = paged ? pages : batch;
  int64_t allQueries = ragged ? queries * batch : queries;
  add(makeRandom(
      c.dtype,
      getHeadShape(c.queryHeadMajor, ragged, batch, allQueries, c.heads, c.dim),
      seed));
  add(makeRandom(c.dtype,
                 getHeadShape(c.keyHeadMajor, raggedKeys, keyBatch, rows,
                              c.keyHeads, c.dim),
                 seed + 1));
  add(makeRandom(c.dtype,
                 getHeadShape(c.keyHeadMajor, raggedKeys, keyBatch, rows,
                              c.keyHeads, c.valueDim),
                 seed + 2));

  using reference::TokenLayout;
  spec.queryLayout =
      c.queryHeadMajor ? TokenLayout::HeadMajor : TokenLayout::TokenMajor;
  spec.keyLayout =
      c.keyHeadMajor ? TokenLayout::HeadMajor : TokenLayout::TokenMajor;
  spec.scale = c.scale;
  spec.causal = c.causal;
  spec.left = c.left;
  spec.right = c.right;

  auto getGrid = [&](bool isRagged, int64_t tokens) {
    return isRagged ? std::vector<int64_t>{tokens}
                    : std::vector<int64_t>{batch, tokens};
  };
  if (c.queryAngles != Angles::None)
    spec.queryRotation =
        addRotation(c.queryAngles, getGrid(ragged, allQueries));
  if (c.keyAngles != Angles::None)
    spec.keyRotation = addRotation(
        c.keyAngles, getGrid(raggedKeys, paged ? blocks * kPageSlots : rows));
  if (c.norms)
    for (auto *norm : {&spec.queryNorm, &spec.keyNorm}) {
      int64_t heads = norm == &spec.queryNorm ? c.heads : c.keyHeads;
      int64_t size = c.normsOfAllHeads ? heads * c.dim : c.dim;
      runtime::Array &weights =
          add(makeRandom(c.dtype, {size}, seed + inputs.size()));
      norm->emplace();
      reference::Array values = toReference(weights);
      (*norm)->weight.assign(values.values.begin(), values.values.end());
      for (double &weight : (*norm)->weight)
        weight += c.normsPlusOne;
      (*norm)->epsilon = kEps;
    }
  if (c.lengths || c.form == Form::RaggedQueries || paged) {
    // All keys are valid in the first sequence, none in the second, and any
    // number in the others.
    for (int64_t b = 0; b < batch; ++b)
      spec.keyLengths.push_back(
          b == 0   ? keys
          : b == 1 ? 0
                   : static_cast<int64_t>(generator() % (keys + 1)));
    add(makePositions(POSENC_I64, {batch}, spec.keyLengths));
  }
  if (ragged) {
    spec.queryStarts = split(allQueries, batch, generator);
    add(makeI32({batch + 1}, spec.queryStarts));
  }
  if (raggedKeys) {
    spec.keyStarts = split(rows, batch, generator);
    add(makeI32({batch + 1}, spec.keyStarts));
  }
  if (paged) {
    spec.blockTable.emplace();
    std::vector<int64_t> table(pages);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), generator);
    table.resize(blocks * batch);
    spec.blockTable->blocks = blocks;
    spec.blockTable->pages = table;
    add(makeI32({batch, blocks}, table));
  }
  if (c.mask != Mask::None) {
    bool isBoolean = c.mask == Mask::Boolean || c.mask == Mask::BooleanByKey;
    std::vector<int64_t> shape{batch, c.heads, queries, keys};
    if (isBoolean)
      shape = {batch, 1, c.mask == Mask::BooleanByKey ? 1 : queries, keys};
    if (c.mask == Mask::AddedToAll || c.mask == Mask::AddedLowest)
      shape = {1, 1, queries, keys};
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1},
                                    std::multiplies<>());
    runtime::Array mask;
    if (isBoolean) {
      std::vector<int64_t> bits;
      for (int64_t i = 0; i < count; ++i)
        bits.push_back(generator() % 3 != 0);
      mask = makeI32(shape, bits);
    } else {
      mask = makeRandom(c.dtype, shape, seed + 7);
      reference::DType type = getReferenceType(c.dtype);
      auto store = [&](int64_t i, double x) {
        reference::storeBits(type, mask.data(), i, reference::encode(type, x));
      };
      double lowest = c.dtype == POSENC_F16    ? -65504
                      : c.dtype == POSENC_BF16 ? -0x1.fep127
                                               : -FLT_MAX;
      for (int64_t i = 0; i < count; ++i) {
        int64_t query = i / keys, key = i % keys;
        if (c.mask != Mask::AddedLowest && i % 3 == 0)
          store(i, -std::numeric_limits<double>::infinity());
        // Padding on the left, for some queries of the whole row.
        if (c.mask == Mask::AddedLowest)
          store(i, query % 5 == 4 || (query % 5 < 3 && key < keys / 2) ? lowest
                                                                       : 0);
      }
    }
    spec.mask.emplace();
    spec.mask->array = toReference(mask);
    spec.mask->isBoolean = isBoolean;
    add(std::move(mask));
  }
  posenc_dtype sumType = c.dtype == POSENC_F64 ? POSENC_F64 : POSENC_F32;
  if (c.sinks) {
    reference::Array values =
        toReference(add(makeRandom(sumType, {c.heads}, seed + 8)));
    spec.sinks.assign(values.values.begin(), values.values.end());
  }
  reference::Array table;
  if (c.t5)
    table = toReference(add(makeRandom(sumType, {32, c.heads}, seed + 9)));
  if (c.softCap || c.alibi || c.t5)
    spec.score = [this, table](double score, int64_t, int64_t h, int64_t i,
                               int64_t j) {
      if (c.softCap)
        score = reference::softCap(score, kCap);
      if (c.alibi)
        score += reference::alibiBias(h, c.heads, i, j);
      if (c.t5)
        score += static_cast<double>(
            table.values[reference::t5Bucket(j - i) * c.heads + h]);
      return score;
    };
  std::vector<int64_t> document;
  if (c.document) {
    int64_t count = raggedKeys ? rows : keys;
    for (int64_t i = 0; i < count; ++i)
      document.push_back(generator() % 4 != 0);
    add(makeI32({count}, document));
  }
  if (c.where || c.document)
    spec.sees = [this, document](int64_t b, int64_t h, int64_t i, int64_t j) {
      return (!c.where || (b + h + i + j) % 3 != 0) &&
             (!c.document || document[j] != 0);
    };
  expected = compute(spec);
}

reference::AttentionResult
AttentionData::compute(const reference::AttentionSpec &s) const {
  return reference::attention(toReference(inputs[0]), toReference(inputs[1]),
                              toReference(inputs[2]), s);
}

/// Puts NaN into all elements of a row, or NaN or an infinity into one.
void AttentionData::spoilRow(runtime::Array &rows, size_t row,
                             std::mt19937_64 &generator) {
  reference::DType type = getReferenceType(c.dtype);
  size_t dim = rows.shape().back();
  double infinity = std::numeric_limits<double>::infinity();
  double nan = std::numeric_limits<double>::quiet_NaN();
  const double kinds[] = {nan, nan, infinity, -infinity};
  size_t kind = generator() % 4, lane = generator() % dim;
  for (size_t i = 0; i < dim; ++i)
    if (kind == 0 || i == lane)
      reference::storeBits(type, rows.data(), row * dim + i,
                           reference::encode(type, kinds[kind]));
}

std::vector<bool> AttentionData::findVisibleRows() const {
  const std::vector<int64_t> &shape = inputs[1].shape();
  std::vector<bool> isVisible(inputs[1].numElements() / shape.back());
  int64_t tokens = shape[shape.size() - (c.keyHeadMajor ? 2 : 3)];
  std::mutex mutex;
  reference::AttentionSpec watched = spec;
  watched.sees = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    if (spec.sees && !spec.sees(b, h, i, j))
      return false;
    int64_t head = h / (c.heads / c.keyHeads);
    if (!spec.keyStarts.empty()) {
      j += spec.keyStarts[b];
      b = 0;
    } else if (spec.blockTable) {
      b = spec.blockTable->pages[b * spec.blockTable->blocks + j / tokens];
      j %= tokens;
    }
    std::lock_guard<std::mutex> lock(mutex);
    // A norm over all heads of a token also reads the rows of other heads.
    for (int64_t other = 0; other < c.keyHeads; ++other)
      if (other == head || c.normsOfAllHeads)
        isVisible[c.keyHeadMajor ? (b * c.keyHeads + other) * tokens + j
                                 : (b * tokens + j) * c.keyHeads + other] =
            true;
    // The scores of the pairs are of no interest.
    return false;
  };
  compute(watched);
  return isVisible;
}

size_t AttentionData::spoilUnseen(uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<bool> isVisible = findVisibleRows();
  for (size_t row = 0; row < isVisible.size(); ++row)
    for (size_t input = 1; input <= 2; ++input)
      if (!isVisible[row])
        spoilRow(inputs[input], row, generator);
  return std::count(isVisible.begin(), isVisible.end(), false);
}

void AttentionData::spoilSome(uint64_t seed) {
  std::mt19937_64 generator(seed);
  // The longest sequences are ragged ones. ALiBi's bias of distant keys there
  // can make a weight zero in f32, as the lowest mask element does, and the
  // result of a zero weight and an infinite value is unspecified.
  bool mayVanish =
      c.mask == Mask::AddedLowest ||
      (c.alibi && (c.form == Form::Ragged || c.form == Form::RaggedQueries));
  for (size_t input = 1; input <= (mayVanish ? 1 : 2); ++input) {
    size_t rows = inputs[input].numElements() / inputs[input].shape().back();
    for (size_t row = 0; row < rows; ++row)
      // Never both the key and the value of a token: the result is unspecified
      // if the score is minus infinity and the value is not finite.
      if (generator() % 12 == 0 && row % 2 == input % 2)
        spoilRow(inputs[input], row, generator);
  }
  expected = compute(spec);
  hasNonFinite = true;
}

std::vector<posenc_value> AttentionData::getInputs() const {
  std::vector<posenc_value> values;
  for (const runtime::Array &input : inputs)
    values.push_back(input.value());
  return values;
}

std::string
AttentionData::check(const std::vector<runtime::Array> &results) const {
  if (size_t expectedResults = c.logSums ? 2 : 1;
      results.size() != expectedResults)
    return "expected " + std::to_string(expectedResults) + " results, found " +
           std::to_string(results.size());
  reference::DType type = getReferenceType(c.dtype);
  reference::AttentionComparison comparison = reference::compareAttention(
      type, results[0].data(), expected, results[0].shape());
  // Most results may be NaN, and the error of the few others relative to their
  // norm has no useful limit.
  double limitRelative = hasNonFinite ? std::numeric_limits<double>::infinity()
                                      : reference::defaultLimitRelative(type);
  if (!comparison.within(limitRelative))
    return comparison.mismatch
               ? comparison.reason
               : "relative error " + std::to_string(comparison.relative) +
                     ", element error / bound " +
                     std::to_string(comparison.maxRatio);
  if (!c.logSums)
    return "";
  // The error of a score whose query and key rows are rounded to the type after
  // a norm or rotation. With dot products or tiles of bf16 they are not.
  bool hasBF16Products = c.route == Route::BF16Dots || c.route == Route::AMX;
  bool hasRoundedRows =
      !hasBF16Products &&
      (c.norms || c.queryAngles != Angles::None || c.keyAngles != Angles::None);
  double limit = type == reference::DType::F64   ? 1e-13
                 : type == reference::DType::F32 ? 4e-6
                 : !hasRoundedRows               ? 1e-5
                 : type == reference::DType::F16 ? 4e-3
                                                 : 4e-2;
  reference::Array sums = toReference(results[1]);
  if (sums.shape != expected.logSumExp.shape)
    return "the log-sum-exp has the wrong shape";
  for (size_t i = 0; i < sums.values.size(); ++i) {
    long double got = sums.values[i], want = expected.logSumExp.values[i];
    bool areSame = got == want || (std::isnan(got) && std::isnan(want));
    if (!areSame &&
        !(std::fabs(got - want) <= limit * std::fmax(1.0L, std::fabs(want))))
      return "log-sum-exp #" + std::to_string(i) + " is " +
             std::to_string(got) + ", expected " + std::to_string(want);
  }
  return "";
}
