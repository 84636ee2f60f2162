//===- FaultsTest.cpp - seeded faults in compiled kernels are detected ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

using namespace posenc;
using namespace posenc::test;

namespace {

// Replaces `from` by `to` in the PTX. `expected` is a regular expression for
// the error of `function`.
struct Fault {
  const char *name, *function, *from, *to, *expected;
};

void PrintTo(const Fault &fault, std::ostream *os) { *os << fault.name; }

class CudaFaults : public CudaTest,
                   public testing::WithParamInterface<Fault> {};

} // namespace

TEST_P(CudaFaults, AreDetected) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Fault &fault = GetParam();
  // The child process starts again with this environment.
  std::string edit = std::string(fault.from) + "=>" + fault.to;
  setenv("POSENC_FAKE_CUDA_EDIT", edit.c_str(), 1);
  auto run = [&] {
    check(fault.function, {2, 3, 5, 2});
    std::fprintf(stderr, "%s\n", message.c_str());
    _exit(HasFailure() ? 7 : 8);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), fault.expected);
  unsetenv("POSENC_FAKE_CUDA_EDIT");
}

INSTANTIATE_TEST_SUITE_P(
    Cuda, CudaFaults,
    testing::Values(Fault{"MissingBarrier", "half_bf16", "bar.sync \t0;", ";",
                          "'shared memory' has not been written there"},
                    Fault{"Contraction", "half_f32", "mul.rn.f32", "mul.f32",
                          "mul' may be contracted"},
                    Fault{"VectorSize", "half_f32", "ld.global.v4.b32",
                          "ld.global.v8.b32",
                          "the number of registers differs"},
                    Fault{"MissingClamp", "odd", "min.u64", "max.u64",
                          "no buffer is near|which has|has not been written"},
                    Fault{"WrongThreadIndex", "half_f32", "%tid.x", "%ctaid.x",
                          "data race|has not been written"},
                    Fault{"WrongBlockSize", "half_f32", ".maxntid ",
                          ".maxntid 8, 1, 1 //",
                          "takes blocks of at most 8 x 1 x 1"},
                    Fault{"UnknownModifier", "half_f32", "bar.sync", "bar.foo",
                          "unknown kind of barrier"}),
    [](const testing::TestParamInfo<Fault> &info) { return info.param.name; });
