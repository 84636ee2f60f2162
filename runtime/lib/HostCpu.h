//===- HostCpu.h - Checks whether this CPU can run a target -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_HOSTCPU_H
#define POSENC_RUNTIME_LIB_HOSTCPU_H

#include <string>
#include <vector>

namespace posenc::runtime {

/// Whether this CPU can run code for at least one of the targets
/// ("x86-64-v4+avx512bf16"). True for a target with unknown features and for a
/// list without CPU targets. The library itself repeats the check at each call.
bool hostRunsAnyOf(const std::vector<std::string> &targets);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_HOSTCPU_H
