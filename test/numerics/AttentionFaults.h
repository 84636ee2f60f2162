//===- AttentionFaults.h - seeded faults in attention -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A subject is an attention at a stage of the lowering, with inputs. Each fault
// is put into a copy of it, which must then be beyond the limits that the
// control keeps:
//
//   INSTANTIATE_TEST_SUITE_P(Paged, AttentionFaultTest,
//                            testing::ValuesIn(
//                                withSubject({getPagedCase(), {3, 40, 43}},
//                                            kPagedFaults)),
//                            getAttentionFaultName);
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_ATTENTIONFAULTS_H
#define POSENC_TEST_NUMERICS_ATTENTIONFAULTS_H

#include "AttentionCase.h"
#include "Faults.h"

#include "llvm/ADT/ArrayRef.h"

namespace posenc::test {

/// Selects the keys and values that are infinite or NaN.
enum class KeyValues {
  Finite,
  SomeNonFinite,  // Some rows, and the results that depend on them.
  UnseenNonFinite // The rows that no query sees.
};

/// The attention that faults are put into. Vectors have a fixed width, so that
/// the IR is the same on every machine: 64 bytes with products of bf16,
/// otherwise 32.
struct AttentionSubject {
  AttentionCase attention;
  AttentionSizes sizes;
  KeyValues keyValues = KeyValues::Finite;
  mlir::posenc::Stage stage = mlir::posenc::Stage::Vector;
  Products products = Products::F32;
};

/// The lowered module of a subject, and its inputs.
struct LoweredAttention {
  LoweredModule module;
  AttentionData data;

  explicit LoweredAttention(const AttentionSubject &subject);
};

/// A fault, and the attention that it is put into.
struct AttentionFault {
  /// Returns the attention, which the first call for a subject lowers.
  std::function<const LoweredAttention &()> getAttention;
  Fault fault;
};
void PrintTo(const AttentionFault &fault, std::ostream *os);
std::string
getAttentionFaultName(const testing::TestParamInfo<AttentionFault> &info);

/// Pairs each fault with the subject.
std::vector<AttentionFault> withSubject(const AttentionSubject &subject,
                                        llvm::ArrayRef<Fault> faults);

/// The suite of the test IsCaught in AttentionFaults.cpp.
class AttentionFaultTest : public testing::TestWithParam<AttentionFault> {};

// Several files of faults share the following cases.

/// Returns a case with almost every feature at once.
AttentionCase getAllFeaturesCase();
/// Returns a prefill with norms, rotations, a window, sinks and lengths.
AttentionCase getPrefillCase();

// Several files of faults use the following matchers.

/// Matches the argument of an exponential, a score less the running max.
Matcher isExponent();
/// Requires that the result is an i64, which is the type of positions.
bool isI64(mlir::Operation *op);
/// Requires that the result is stored as the running sum, in a row of the
/// statistics of a tile.
Matcher isStoredAsSum();
/// Requires that the result is stored as a part of an accumulator, in a loop
/// along its row.
Matcher isStoredAsAccumulator();
/// Matches the test for a weight of zero. It leaves out a value that may be
/// infinite or NaN.
Matcher isWeightZero();

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_ATTENTIONFAULTS_H
