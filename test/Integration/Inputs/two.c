/*===- two.c - two libraries in one process -----------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <dlfcn.h>

/* Linked with both libraries, or, with DLOPEN, given the paths of two libraries
 * with the same symbols. */

typedef void (*Body)(void *arg, int64_t i);
typedef void (*ParallelFor)(void *ctx, Body body, void *arg, int64_t n);

struct Library {
  int32_t (*rope)(const float *x, const int64_t *positions, float *out,
                  int64_t tokens);
  const char *(*metadata)(void);
  void (*setParallelFor)(ParallelFor pf, void *ctx);
  double base;
};

#ifdef DLOPEN
static void *find(void *handle, const char *name) {
  void *address = dlsym(handle, name);
  CHECK(address != NULL);
  return address;
}

static void load(struct Library *library, const char *path) {
  void *address, *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  CHECK(handle != NULL);
  address = find(handle, "same_rope");
  memcpy(&library->rope, &address, sizeof(address));
  address = find(handle, "same_metadata");
  memcpy(&library->metadata, &address, sizeof(address));
  address = find(handle, "same_set_parallel_for");
  memcpy(&library->setParallelFor, &address, sizeof(address));
}
#else
#include "one.h"
#include "other.h"
#endif

enum { kTokens = 3000, kDim = 64, kCount = kTokens * kDim };
static float x[kCount], out[kCount];
static int64_t positions[kTokens];

static void check(const struct Library *library) {
  int token, lane;
  memset(out, 0xff, sizeof(out));
  CHECK(library->rope(x, positions, out, kTokens) == 0);
  for (token = 0; token < kTokens; ++token) {
    double row[kDim];
    for (lane = 0; lane < kDim; ++lane)
      row[lane] = (double)x[token * kDim + lane];
    for (lane = 0; lane < kDim; lane += 7) {
      double expected = rotateLane(row, kDim, 0, library->base,
                                   (double)positions[token], lane);
      CHECK(fabs((double)out[token * kDim + lane] - expected) < 3e-7);
    }
  }
}

static void countLoop(void *ctx, Body body, void *arg, int64_t n) {
  int64_t i;
  ++*(int *)ctx;
  for (i = 0; i < n; ++i)
    body(arg, i);
}

int main(int argc, char **argv) {
  struct Library one, other;
  int i, oneLoops = 0, otherLoops = 0;
  (void)argc;
  (void)argv;
#ifdef DLOPEN
  CHECK(argc == 3);
  load(&one, argv[1]);
  load(&other, argv[2]);
  CHECK(strcmp(one.metadata(), other.metadata()) == 0);
#else
  one.rope = one_rope;
  one.metadata = one_metadata;
  one.setParallelFor = one_set_parallel_for;
  other.rope = other_rope;
  other.metadata = other_metadata;
  other.setParallelFor = other_set_parallel_for;
  CHECK(strstr(one.metadata(), "one_rope") != NULL);
  CHECK(strstr(other.metadata(), "other_rope") != NULL);
#endif
  one.base = 10000.0;
  other.base = 500000.0;
  CHECK(one.rope != other.rope);
  CHECK(one.metadata() != other.metadata());

  for (i = 0; i < kTokens; ++i)
    positions[i] = i % 100;
  fillFloats(x, kCount);
  check(&one);
  check(&other);

  /* Each library has its own parallel_for. */
  one.setParallelFor(countLoop, &oneLoops);
  check(&one);
  check(&other);
  CHECK(oneLoops == 1 && otherLoops == 0);
  other.setParallelFor(countLoop, &otherLoops);
  check(&one);
  check(&other);
  CHECK(oneLoops == 2 && otherLoops == 1);
  one.setParallelFor(NULL, NULL);
  check(&one);
  check(&other);
  CHECK(oneLoops == 2 && otherLoops == 2);
  puts("ok");
  return 0;
}
