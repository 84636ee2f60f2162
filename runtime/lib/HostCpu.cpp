//===- HostCpu.cpp - Checks whether this CPU can run a target -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostCpu.h"

using namespace posenc::runtime;

#if defined(__x86_64__)
/// Returns whether this CPU has a feature; true for an unknown feature.
static bool hostHas(const std::string &feature) {
  // Code for AVX512-BF16 also uses AVX512-VNNI.
  if (feature == "avx512bf16")
    return __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512vnni");
  // The built-in accepts string literals only.
#define POSENC_FEATURE(NAME)                                                   \
  if (feature == NAME)                                                         \
    return __builtin_cpu_supports(NAME) != 0;
  POSENC_FEATURE("x86-64-v2")
  POSENC_FEATURE("x86-64-v3")
  POSENC_FEATURE("x86-64-v4")
  POSENC_FEATURE("avx")
  POSENC_FEATURE("avx2")
  POSENC_FEATURE("fma")
  POSENC_FEATURE("f16c")
  POSENC_FEATURE("avx512f")
  POSENC_FEATURE("avx512bw")
  POSENC_FEATURE("avx512cd")
  POSENC_FEATURE("avx512dq")
  POSENC_FEATURE("avx512vl")
  POSENC_FEATURE("avx512vnni")
  POSENC_FEATURE("avx512fp16")
#undef POSENC_FEATURE
  return true;
}

static bool hostRuns(const std::string &target) {
  static const std::string family = "x86-64:";
  size_t begin = target.rfind(family, 0) == 0 ? family.size() : 0;
  while (true) {
    size_t end = target.find('+', begin);
    if (!hostHas(target.substr(begin, end - begin)))
      return false;
    if (end == std::string::npos)
      return true;
    begin = end + 1;
  }
}
#else
static bool hostRuns(const std::string &) { return true; }
#endif

static bool isDevice(const std::string &target) {
  return target.rfind("cuda", 0) == 0 || target.rfind("vulkan", 0) == 0;
}

bool posenc::runtime::hostRunsAnyOf(const std::vector<std::string> &targets) {
  bool anyProcessor = false;
  for (const std::string &target : targets) {
    if (isDevice(target))
      continue;
    anyProcessor = true;
    if (hostRuns(target))
      return true;
  }
  return !anyProcessor;
}
