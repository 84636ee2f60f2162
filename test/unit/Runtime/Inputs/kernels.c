//===- kernels.c - A kernel library written in C --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <stddef.h>
#include <stdint.h>

const char *fake_metadata(void);
const char *fake_metadata(void) {
  return "{\"posenc\":\"0.1.0\",\"abi\":1,\"prefix\":\"fake\","
         "\"llvm\":\"22.1.8\",\"targets\":[\"x86-64\",\"aarch64\"],"
         "\"functions\":["
         "{\"name\":\"scale\",\"symbol\":\"fake_scale\","
         "\"tvm_ffi\":\"__tvm_ffi_fake_scale\",\"inputs\":["
         "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"f32\","
         "\"shape\":[\"n0\",4]}],\"outputs\":[{\"name\":\"y\","
         "\"kind\":\"tensor\",\"dtype\":\"f32\",\"shape\":[\"n0\",4]}],"
         "\"sizes\":[\"n0\"]},"
         "{\"name\":\"add_positions\",\"symbol\":\"fake_add_positions\","
         "\"inputs\":["
         "{\"name\":\"q\",\"kind\":\"tensor\",\"dtype\":\"f64\","
         "\"shape\":[\"n0\",\"n1\",2]},"
         "{\"name\":\"positions\",\"kind\":\"tensor\",\"dtype\":\"i64\","
         "\"shape\":[\"n0\",\"n1\"]},"
         "{\"name\":\"offset\",\"kind\":\"scalar\",\"dtype\":\"i64\"}],"
         "\"outputs\":[{\"name\":\"q_out\",\"kind\":\"tensor\","
         "\"dtype\":\"f64\",\"shape\":[\"n0\",\"n1\",2]}],"
         "\"sizes\":[\"n0\",\"n1\"]},"
         "{\"name\":\"fill\",\"symbol\":\"fake_fill\",\"inputs\":["
         "{\"name\":\"count\",\"kind\":\"scalar\",\"dtype\":\"i64\"},"
         "{\"name\":\"value\",\"kind\":\"scalar\",\"dtype\":\"i32\"}],"
         "\"outputs\":[{\"name\":\"out\",\"kind\":\"tensor\","
         "\"dtype\":\"i32\",\"shape\":[\"count\",8]}],\"sizes\":[]},"
         "{\"name\":\"fails\",\"symbol\":\"fake_fails\",\"inputs\":["
         "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"f32\","
         "\"shape\":[]}],\"outputs\":[],\"sizes\":[]},"
         "{\"name\":\"scratch\",\"symbol\":\"fake_scratch\",\"inputs\":["
         "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"i64\","
         "\"shape\":[\"n\"]}],\"outputs\":[{\"name\":\"y\","
         "\"kind\":\"tensor\",\"dtype\":\"i64\",\"shape\":[\"n\"]}],"
         "\"sizes\":[\"n\"]},"
         "{\"name\":\"loop\",\"symbol\":\"fake_loop\",\"inputs\":[],"
         "\"outputs\":[{\"name\":\"out\",\"kind\":\"tensor\","
         "\"dtype\":\"index\",\"shape\":[\"n\"]}],\"sizes\":[\"n\"]},"
         "{\"name\":\"mix\",\"symbol\":\"fake_mix\",\"inputs\":["
         "{\"name\":\"a\",\"kind\":\"scalar\",\"dtype\":\"f32\"},"
         "{\"name\":\"x\",\"kind\":\"tensor\",\"dtype\":\"f64\","
         "\"shape\":[\"n\"]},"
         "{\"name\":\"b\",\"kind\":\"scalar\",\"dtype\":\"f64\"},"
         "{\"name\":\"i\",\"kind\":\"scalar\",\"dtype\":\"i32\"},"
         "{\"name\":\"o\",\"kind\":\"tensor\",\"dtype\":\"f64\","
         "\"shape\":[\"n\"],\"shape_only\":true}],"
         "\"outputs\":[{\"name\":\"y\",\"kind\":\"tensor\","
         "\"dtype\":\"f64\",\"shape\":[\"n\"]}],\"sizes\":[\"n\"]}]}";
}

int32_t fake_mix(float a, const double *x, double b, int32_t i, const double *o,
                 double *y, int64_t n);
int32_t fake_mix(float a, const double *x, double b, int32_t i, const double *o,
                 double *y, int64_t n) {
  (void)o;
  for (int64_t j = 0; j < n; ++j)
    y[j] = (double)a * x[j] + b + i;
  return 0;
}

int32_t fake_scale(const float *x, float *y, int64_t n0);
int32_t fake_scale(const float *x, float *y, int64_t n0) {
  for (int64_t i = 0; i < n0 * 4; ++i)
    y[i] = 2 * x[i];
  return 0;
}

/* The TVM FFI entry point; the process may not have loaded TVM FFI. */
extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
    __attribute__((weak));
int __tvm_ffi_fake_scale(void *handle, const void *args, int32_t count,
                         void *result);
int __tvm_ffi_fake_scale(void *handle, const void *args, int32_t count,
                         void *result) {
  (void)handle, (void)args, (void)count, (void)result;
  if (TVMFFIErrorSetRaisedFromCStr)
    TVMFFIErrorSetRaisedFromCStr("TypeError", "no arguments");
  return -1;
}

int32_t fake_add_positions(const double *q, const int64_t *positions,
                           int64_t offset, double *out, int64_t n0, int64_t n1);
int32_t fake_add_positions(const double *q, const int64_t *positions,
                           int64_t offset, double *out, int64_t n0,
                           int64_t n1) {
  for (int64_t i = 0; i < n0 * n1; ++i)
    for (int64_t j = 0; j < 2; ++j)
      out[2 * i + j] = q[2 * i + j] + (double)(positions[i] + offset);
  return 0;
}

int32_t fake_fill(int64_t count, int32_t value, int32_t *out);
int32_t fake_fill(int64_t count, int32_t value, int32_t *out) {
  for (int64_t i = 0; i < count * 8; ++i)
    out[i] = value;
  return 0;
}

int32_t fake_fails(const float *x);
int32_t fake_fails(const float *x) { return (int32_t)*x; }

int64_t fake_scratch_workspace(int64_t n);
int64_t fake_scratch_workspace(int64_t n) {
  if (n == 3)
    return -1;
  if (n == 5)
    return INT64_MAX;
  return n * 8;
}

// Reverses x through the workspace, so that y may be x.
int32_t fake_scratch(const int64_t *x, int64_t *y, int64_t n, void *workspace);
int32_t fake_scratch(const int64_t *x, int64_t *y, int64_t n, void *workspace) {
  int64_t *copy = workspace;
  if (!copy || (uintptr_t)copy % 64)
    return 1;
  for (int64_t i = 0; i < n; ++i)
    copy[i] = x[i];
  for (int64_t i = 0; i < n; ++i)
    y[i] = copy[n - 1 - i];
  return 0;
}

typedef void (*parallel_for)(void *, void (*)(void *, int64_t), void *,
                             int64_t);
static parallel_for current;
static void *current_ctx;

void fake_set_parallel_for(parallel_for pf, void *ctx);
void fake_set_parallel_for(parallel_for pf, void *ctx) {
  current = pf;
  current_ctx = ctx;
}

static void body(void *arg, int64_t i) { ((int64_t *)arg)[i] = 10 * i; }

int32_t fake_loop(int64_t *out, int64_t n);
int32_t fake_loop(int64_t *out, int64_t n) {
  if (current)
    current(current_ctx, body, out, n);
  else
    for (int64_t i = 0; i < n; ++i)
      body(out, i);
  return 0;
}
