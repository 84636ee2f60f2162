//===- AttentionMaskTest.cpp - tiles that mask_mod masks ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masks with empty, full and partial tiles against the oracle, in prefill, in
// decode and through linalg, and masks whose arithmetic wraps, for which the
// bounds of a tile are those of the integers' type.
//
//===----------------------------------------------------------------------===//

#include "AttentionVectorCase.h"
#include "Faults.h"

#include <cmath>

using namespace posenc;
using namespace posenc::test;
using namespace posenc::test::vectors;
namespace arith = mlir::arith;

namespace {

/// A mask: the operations of a region that define `%y`, and the same condition
/// in C++.
struct Mask {
  const char *name;
  const char *operations;
  bool (*sees)(int64_t b, int64_t h, int64_t i, int64_t j);
};

/// The operands `%x0`, documents of 29 tokens, `%x1`, documents in no order,
/// `%x2`, whether a token is visible to all, and `%x3`, a number for each
/// sequence.
constexpr int64_t kNumTokens = 400;
int64_t getDocument(int64_t token) { return token / 29; }
int64_t getUnsorted(int64_t token) { return token * 37 % 5 - 2; }
bool isGlobal(int64_t token) { return token % 113 == 5; }
int64_t getPrefix(int64_t sequence) { return 9 + 40 * sequence; }

std::vector<Operand> makeOperands(posenc_dtype) {
  std::vector<int64_t> documents, unsorted, globals;
  for (int64_t token = 0; token < kNumTokens; ++token) {
    documents.push_back(getDocument(token));
    unsorted.push_back(getUnsorted(token));
    globals.push_back(isGlobal(token));
  }
  std::vector<Operand> operands;
  auto add = [&](const char *type, posenc_dtype dtype,
                 const std::vector<int64_t> &values) {
    operands.push_back(
        {type, makePositions(dtype, {int64_t(values.size())}, values)});
  };
  add("tensor<?xi32>", POSENC_I32, documents);
  add("tensor<?xi32>", POSENC_I32, unsorted);
  add("tensor<?xi64>", POSENC_I64, globals);
  add("tensor<?xi64>", POSENC_I64, {getPrefix(0), getPrefix(1)});
  return operands;
}

int64_t clamp(int64_t i) { return std::max<int64_t>(i, 0); }

const Mask kMasks[] = {
    {"Strict", "%y = arith.cmpi slt, %j, %i : index",
     [](int64_t, int64_t, int64_t i, int64_t j) { return j < i; }},
    {"Prefix", R"(
      %n = tensor.extract %x3[%b] : tensor<?xi64>
      %position = arith.index_cast %n : i64 to index
      %c = arith.cmpi sle, %j, %i : index
      %e = arith.cmpi slt, %j, %position : index
      %y = arith.ori %c, %e : i1)",
     [](int64_t b, int64_t, int64_t i, int64_t j) {
       return j <= i || j < getPrefix(b);
     }},
    {"Sinks", R"(
      %four = arith.constant 4 : index
      %window = arith.constant 33 : index
      %d = arith.subi %i, %j : index
      %a = math.absi %d : index
      %n = arith.cmpi ult, %a, %window : index
      %e = arith.cmpi slt, %j, %four : index
      %y = arith.ori %n, %e : i1)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return std::abs(i - j) < 33 || j < 4;
     }},
    {"Documents", R"(
      %zero = arith.constant 0 : index
      %at = arith.maxsi %i, %zero : index
      %d = tensor.extract %x0[%at] : tensor<?xi32>
      %e = tensor.extract %x0[%j] : tensor<?xi32>
      %s = arith.cmpi eq, %d, %e : i32
      %c = arith.cmpi sle, %j, %i : index
      %y = arith.andi %s, %c : i1)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return getDocument(clamp(i)) == getDocument(j) && j <= i;
     }},
    {"UnsortedDocuments", R"(
      %zero = arith.constant 0 : index
      %at = arith.maxsi %i, %zero : index
      %d = tensor.extract %x1[%at] : tensor<?xi32>
      %e = tensor.extract %x1[%j] : tensor<?xi32>
      %y = arith.cmpi eq, %d, %e : i32)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return getUnsorted(clamp(i)) == getUnsorted(j);
     }},
    {"Globals", R"(
      %zero = arith.constant 0 : index
      %none = arith.constant 0 : i64
      %at = arith.maxsi %i, %zero : index
      %d = tensor.extract %x2[%at] : tensor<?xi64>
      %e = tensor.extract %x2[%j] : tensor<?xi64>
      %f = arith.ori %d, %e : i64
      %g = arith.cmpi ne, %d, %none : i64
      %key = arith.cmpi ne, %e, %none : i64
      %any = arith.ori %g, %key : i1
      %relative = arith.subi %i, %j : index
      %n = arith.cmpi sle, %relative, %zero : index
      %y = arith.ori %n, %any : i1)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return isGlobal(clamp(i)) || isGlobal(j) || i <= j;
     }},
    {"Offset", R"(
      %n = tensor.extract %x3[%b] : tensor<?xi64>
      %position = arith.index_cast %n : i64 to index
      %key = arith.addi %j, %position : index
      %y = arith.cmpi sle, %key, %i : index)",
     [](int64_t b, int64_t, int64_t i, int64_t j) {
       return j + getPrefix(b) <= i;
     }},
    {"Blocks", R"(
      %c16 = arith.constant 16 : index
      %c4 = arith.constant 4 : index
      %query = arith.floordivsi %i, %c16 : index
      %key = arith.divui %j, %c16 : index
      %s = arith.cmpi eq, %query, %key : index
      %m = arith.remui %j, %c4 : index
      %n = arith.cmpi ne, %m, %c4 : index
      %y = arith.andi %s, %n : i1)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return (i >= 0 ? i / 16 : -((15 - i) / 16)) == j / 16;
     }},
    {"Heads", R"(
      %one = arith.constant 1 : index
      %zero = arith.constant 0 : index
      %bit = arith.andi %h, %one : index
      %odd = arith.cmpi eq, %bit, %one : index
      %shift = arith.constant 5 : index
      %w = arith.shli %h, %shift : index
      %d = arith.subi %i, %j : index
      %in = arith.cmpi sle, %d, %w : index
      %after = arith.cmpi sge, %d, %zero : index
      %both = arith.andi %in, %after : i1
      %true = arith.constant true
      %even = arith.xori %odd, %true : i1
      %y = arith.select %even, %both, %after : i1)",
     [](int64_t, int64_t h, int64_t i, int64_t j) {
       return i >= j && (h % 2 == 1 || i - j <= 32 * h);
     }},
    // The unsigned order makes negative differences large.
    {"Unsigned", R"(
      %c60 = arith.constant 60 : i32
      %position64 = arith.index_cast %i : index to i64
      %position = arith.trunci %position64 : i64 to i32
      %key64 = arith.index_cast %j : index to i64
      %key = arith.trunci %key64 : i64 to i32
      %d = arith.subi %position, %key : i32
      %y = arith.cmpi ult, %d, %c60 : i32)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return i - j >= 0 && i - j < 60;
     }},
    {"UnsignedQueries", "%y = arith.cmpi ult, %j, %i : index",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return uint64_t(j) < uint64_t(i);
     }},
    // Sums, products and casts that wrap.
    {"WrappedBytes", R"(
      %c100 = arith.constant 100 : i8
      %key64 = arith.index_cast %j : index to i64
      %key = arith.trunci %key64 : i64 to i8
      %s = arith.addi %key, %c100 : i8
      %position64 = arith.index_cast %i : index to i64
      %position = arith.trunci %position64 : i64 to i8
      %y = arith.cmpi sle, %s, %position : i8)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       return int8_t(j + 100) <= int8_t(i);
     }},
    {"WrappedProducts", R"(
      %c = arith.constant 144115188075855873 : i64
      %key = arith.index_cast %j : index to i64
      %position = arith.index_cast %i : index to i64
      %m = arith.muli %key, %c : i64
      %n = arith.muli %position, %c : i64
      %y = arith.cmpi slt, %m, %n : i64)",
     [](int64_t, int64_t, int64_t i, int64_t j) {
       uint64_t factor = 144115188075855873;
       return int64_t(j * factor) < int64_t(i * factor);
     }},
    {"WrappedSums", R"(
      %far = arith.constant 9223372036854775657 : i64
      %key = arith.index_cast %j : index to i64
      %position = arith.index_cast %i : index to i64
      %m = arith.addi %key, %far : i64
      %n = arith.subi %position, %far : i64
      %whole = arith.addi %n, %far : i64
      %c = arith.cmpi slt, %m, %far : i64
      %d = arith.cmpi sle, %key, %whole : i64
      %y = arith.ori %c, %d : i1)",
     [](int64_t, int64_t, int64_t i, int64_t j) { return j > 150 || j <= i; }},
    {"ZeroExtended", R"(
      %c200 = arith.constant 200 : i64
      %key64 = arith.index_cast %j : index to i64
      %key = arith.trunci %key64 : i64 to i8
      %e = arith.extui %key : i8 to i64
      %y = arith.cmpi slt, %e, %c200 : i64)",
     [](int64_t, int64_t, int64_t, int64_t j) { return j % 256 < 200; }},
    {"Never", R"(
      %c1000 = arith.constant 1000 : index
      %y = arith.cmpi sge, %j, %c1000 : index)",
     [](int64_t, int64_t, int64_t, int64_t) { return false; }},
};

Case makeCase(const Mask &mask, Sizes sizes) {
  Case c{mask.name, sizes};
  c.regions = std::string("where(%b, %h, %i, %j) {\n") + mask.operations +
              "\n      posenc.yield %y : i1\n    }";
  c.describe = [sees = mask.sees](reference::AttentionSpec &spec) {
    spec.sees = sees;
  };
  c.operands = makeOperands;
  return c.withLogSum();
}

class AttentionMaskTest : public testing::TestWithParam<Mask> {};

/// Bounds do not depend on the element type, and the lowering through linalg
/// has none, so these masks are enough for both.
bool isSample(const Mask &mask) {
  return llvm::is_contained({"Documents", "Heads", "WrappedSums", "Never"},
                            llvm::StringRef(mask.name));
}

TEST_P(AttentionMaskTest, PrefillMatchesOracle) {
  for (Sizes sizes : {sized(150, 331), sized(200, 101)}) {
    Case c = makeCase(GetParam(), sizes);
    expectMatchesOracle(c, POSENC_F32, Route::Direct);
    if (isSample(GetParam()))
      expectMatchesOracle(c, POSENC_F32, Route::Linalg);
  }
  if (isSample(GetParam()))
    expectMatchesOracle(makeCase(GetParam(), sized(150, 331)), POSENC_BF16,
                        Route::Direct);
}

// Heads that are too wide for the micro-kernels are lowered through linalg,
// with several register tiles of queries per task.
TEST_P(AttentionMaskTest, WideHeadsMatchOracle) {
  Sizes sizes = headed(2, 1, 584, 16);
  sizes.queries = 150;
  sizes.keys = 331;
  expectMatchesOracle(makeCase(GetParam(), sizes), POSENC_F32, Route::Direct);
}

TEST_P(AttentionMaskTest, DecodeMatchesOracle) {
  for (int64_t queries : {1, 3})
    expectMatchesOracle(
        makeCase(GetParam(), decodeSizes(queries, 331, 8, 2, 64, 64))
            .headMajor(),
        POSENC_F32, Route::Direct);
}

/// Adds key lengths to a case. A sequence of the batch may have fewer keys than
/// queries, or none.
Case withLengths(Case c, std::vector<int64_t> lengths) {
  c.groups = "lengths(%x4 : tensor<?xi64>)";
  c.describe = [=, describe = c.describe](reference::AttentionSpec &spec) {
    describe(spec);
    spec.keyLengths = lengths;
  };
  c.operands = [=](posenc_dtype dtype) {
    std::vector<Operand> operands = makeOperands(dtype);
    operands.push_back(
        {"tensor<?xi64>", makePositions(POSENC_I64, {2}, lengths)});
    return operands;
  };
  return c;
}

TEST_P(AttentionMaskTest, LengthsMatchOracle) {
  for (Sizes sizes : {sized(150, 331), decodeSizes(3, 331, 8, 2, 64, 64)})
    for (std::vector<int64_t> lengths : {std::vector<int64_t>{331, 40}, {0, 2}})
      expectMatchesOracle(withLengths(makeCase(GetParam(), sizes), lengths),
                          POSENC_F32, Route::Direct);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionMaskTest, testing::ValuesIn(kMasks),
                         [](const testing::TestParamInfo<Mask> &info) {
                           return info.param.name;
                         });

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// Requires that the operation is not one on vectors.
bool isScalar(mlir::Operation *candidate) {
  return candidate->getResult(0).getType().isIntOrIndex();
}

/// Matches an operation that combines an element with those before it.
template <typename OpTy> Matcher isReduction() {
  return op<OpTy>(operand(0, loopCarried()), isScalar);
}

const Fault kFaults[] = {
    control(),
    {"EmptyTile",
     cmpi(arith::CmpIPredicate::sle, isScalar, usedBy<arith::AndIOp>()),
     setPredicate(arith::CmpIPredicate::slt)},
    {"FullTile",
     cmpi(arith::CmpIPredicate::eq, isScalar, usedBy<arith::AndIOp>()),
     setPredicate(arith::CmpIPredicate::sge)},
    {"MinimumIsMaximum", isReduction<arith::MinSIOp>(),
     replaceWith<arith::MaxSIOp>()},
    {"MaximumIsMinimum", isReduction<arith::MaxSIOp>(),
     replaceWith<arith::MinSIOp>()},
};

class AttentionMaskFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(AttentionMaskFaultTest, IsCaught) {
  const Mask *mask = llvm::find_if(kMasks, [](const Mask &candidate) {
    return llvm::StringRef(candidate.name) == "Documents";
  });
  Case c = makeCase(*mask, sized(150, 331));
  c.hasLogSum = false;
  expectFaultIsCaught(c, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Vector, AttentionMaskFaultTest,
                         testing::ValuesIn(kFaults), getFaultName);

} // namespace
