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
//   static const AttentionSubject &getPaged() {
//     static const AttentionSubject subject(getPagedCase(), {3, 40, 43});
//     return subject;
//   }
//   INSTANTIATE_TEST_SUITE_P(Paged, AttentionFaultTest,
//                            testing::ValuesIn(
//                                withSubject(getPaged, kPagedFaults)),
//                            getAttentionFaultName);
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_ATTENTIONFAULTS_H
#define POSENC_TEST_NUMERICS_ATTENTIONFAULTS_H

#include "AttentionCase.h"
#include "Faults.h"

#include "llvm/ADT/ArrayRef.h"

namespace posenc::test {

/// Says which keys and values are infinite or NaN.
enum class KeyValues {
  Finite,
  SomeNonFinite,  // Some are, and results that depend on them are, too.
  UnseenNonFinite // Those that no query sees are.
};

/// Is an attention at a stage of the lowering, and its inputs.
struct AttentionSubject {
  LoweredModule module;
  AttentionData data;

  /// Vectors have a fixed width, so that the IR is the same on every machine:
  /// 64 bytes with `hasBF16Dots`, otherwise 32.
  AttentionSubject(const AttentionCase &c, AttentionSizes sizes,
                   KeyValues keyValues = KeyValues::Finite,
                   mlir::posenc::Stage stage = mlir::posenc::Stage::Vector,
                   bool hasBF16Dots = false);
};

/// Is a fault and the subject that it is put into.
struct AttentionFault {
  /// Lowers the module on the first call.
  const AttentionSubject &(*getSubject)();
  Fault fault;
};
void PrintTo(const AttentionFault &fault, std::ostream *os);
std::string
getAttentionFaultName(const testing::TestParamInfo<AttentionFault> &info);

/// Pairs each fault with the subject.
std::vector<AttentionFault> withSubject(const AttentionSubject &(*getSubject)(),
                                        llvm::ArrayRef<Fault> faults);

/// Has one test, IsCaught, which is in AttentionFaults.cpp.
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
