//===- FaultsTest.cpp - faults in compiled kernels are found ----*- C++ -*-===//
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

// What stands in the kernels, what is put there, and what is said of it.
struct Fault {
  const char *name, *function, *from, *to, *expected;
};

void PrintTo(const Fault &fault, std::ostream *os) { *os << fault.name; }

class CudaFaults : public CudaTest,
                   public testing::WithParamInterface<Fault> {};

} // namespace

TEST_P(CudaFaults, AreFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Fault &fault = GetParam();
  // Read by the child, which begins anew.
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
    testing::Values(Fault{"NoBarrier", "half_bf16", "bar.sync \t0;", ";",
                          "'shared memory' has not been written there"},
                    Fault{"MayBeFused", "half_f32", "mul.rn.f32", "mul.f32",
                          "mul' may be contracted"},
                    Fault{"BehindTheEnd", "half_f32", "ld.global.v4.b32",
                          "ld.global.v8.b32", "not as many registers"},
                    Fault{"NoMaximum", "odd", "min.u64", "max.u64",
                          "no buffer is near|which has|has not been written"},
                    Fault{"OtherThread", "half_f32", "%tid.x", "%ctaid.x",
                          "a race|has not been written"},
                    Fault{"WrongBlock", "half_f32", ".maxntid ",
                          ".maxntid 8, 1, 1 //",
                          "takes blocks of at most 8 x 1 x 1"},
                    Fault{"Unknown", "half_f32", "bar.sync", "bar.foo",
                          "a barrier of an unknown kind"}),
    [](const testing::TestParamInfo<Fault> &info) { return info.param.name; });
