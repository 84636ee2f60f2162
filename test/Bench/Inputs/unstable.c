//===- unstable.c - a library with kernels that misbehave -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// `steady` is correct, the results of `counts` change with each call, `refuses`
// returns an error, and `scratch` needs scratch memory from the caller.

#include <stdint.h>

#define FUNCTION(name)                                                         \
  "{\"name\":\"" name "\",\"symbol\":\"unstable_" name "\",\"inputs\":["       \
  "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"f32\",\"shape\":[\"n0\"]}]" \
  ",\"outputs\":[{\"name\":\"y\",\"kind\":\"tensor\",\"dtype\":\"f32\","       \
  "\"shape\":[\"n0\"]}],\"sizes\":[\"n0\"]}"

const char *unstable_metadata(void);
const char *unstable_metadata(void) {
  return "{\"posenc\":\"0.1.0\",\"abi\":1,\"prefix\":\"unstable\","
         "\"llvm\":\"22.1.8\",\"targets\":[\"host\"],\"functions\":["
      // clang-format off
      FUNCTION("steady") "," FUNCTION("counts") "," FUNCTION("refuses") ","
      FUNCTION("scratch")
      // clang-format on
      "]}";
}

int32_t unstable_steady(const float *x, float *y, int64_t n);
int32_t unstable_steady(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = 2 * x[i];
  return 0;
}

int32_t unstable_counts(const float *x, float *y, int64_t n);
int32_t unstable_counts(const float *x, float *y, int64_t n) {
  static int calls;
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i];
  y[n - 1] = (float)++calls;
  return 0;
}

int32_t unstable_refuses(const float *x, float *y, int64_t n);
int32_t unstable_refuses(const float *x, float *y, int64_t n) {
  (void)x, (void)y, (void)n;
  return 4;
}

int64_t unstable_scratch_workspace(int64_t n);
int64_t unstable_scratch_workspace(int64_t n) { return 4 * n; }

int32_t unstable_scratch(const float *x, float *y, int64_t n, void *workspace);
int32_t unstable_scratch(const float *x, float *y, int64_t n, void *workspace) {
  float *scratch = workspace;
  for (int64_t i = 0; i < n; ++i)
    scratch[i] = x[i];
  for (int64_t i = 0; i < n; ++i)
    y[i] = scratch[i];
  return 0;
}
