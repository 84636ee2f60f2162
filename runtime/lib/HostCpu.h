//===- HostCpu.h - What the processor can run -------------------*- C++ -*-===//
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

/// Whether this processor runs code for at least one of the targets
/// ("x86-64-v4+avx512bf16"). Targets that are not known here, or are not
/// processors, get the benefit of the doubt, and so does an empty list.
bool hostRunsAnyOf(const std::vector<std::string> &targets);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_HOSTCPU_H
