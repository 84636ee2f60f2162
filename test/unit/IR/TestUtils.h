//===- TestUtils.h - parsing attributes -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_IR_TESTUTILS_H
#define POSENC_TEST_UNIT_IR_TESTUTILS_H

#include "posenc/IR/Posenc.h"

#include "mlir/AsmParser/AsmParser.h"
#include "gtest/gtest.h"

namespace mlir::posenc {

struct AttrTest : testing::Test {
  AttrTest() { context.loadDialect<PosencDialect>(); }

  /// Parses an attribute of the type, or fails the test.
  template <typename AttrTy> AttrTy parse(const std::string &text) {
    auto attr = dyn_cast_or_null<AttrTy>(parseAttribute(text, &context));
    EXPECT_TRUE(attr) << text;
    return attr;
  }

  MLIRContext context;
};

/// Checks the values of all pairs up to a relative error.
inline void expectNear(ArrayRef<::posenc::BigFloat> actual,
                       ArrayRef<double> expected, double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (auto [i, value] : llvm::enumerate(expected))
    EXPECT_NEAR(actual[i].toDouble(), value, relative * std::abs(value))
        << "pair " << i;
}

} // namespace mlir::posenc

#endif // POSENC_TEST_UNIT_IR_TESTUTILS_H
