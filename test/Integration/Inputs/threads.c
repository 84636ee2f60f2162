/*===- threads.c - the host's parallel_for and OpenMP -------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#define _POSIX_C_SOURCE 200809L

#include "rope.h"

#include "check.h"

#include <pthread.h>

/* Large enough for many tasks, and not a multiple of a tile. */
enum { kTokens = 2999, kRow = 4 * 64, kCount = kTokens * kRow };

static float q[kCount], k[kCount], qOut[kCount], kOut[kCount];
static float qExpected[kCount], kExpected[kCount];
static int64_t positions[kTokens];

/* A thread pool that is created for each loop. */
struct Pool {
  int numThreads;
  int64_t numLoops, numCalls;
};

struct Loop {
  void (*body)(void *arg, int64_t i);
  void *arg;
  int64_t n, next, done;
  pthread_mutex_t mutex;
};

static void *runLoop(void *data) {
  struct Loop *loop = (struct Loop *)data;
  for (;;) {
    pthread_mutex_lock(&loop->mutex);
    int64_t i = loop->next++;
    pthread_mutex_unlock(&loop->mutex);
    if (i >= loop->n)
      return NULL;
    /* Runs tasks from the last to the first: any order is allowed. */
    loop->body(loop->arg, loop->n - 1 - i);
    pthread_mutex_lock(&loop->mutex);
    ++loop->done;
    pthread_mutex_unlock(&loop->mutex);
  }
}

static void parallelFor(void *ctx, void (*body)(void *arg, int64_t i),
                        void *arg, int64_t n) {
  struct Pool *pool = (struct Pool *)ctx;
  struct Loop loop;
  pthread_t threads[16];
  int t;
  CHECK(n > 1);
  loop.body = body;
  loop.arg = arg;
  loop.n = n;
  loop.next = loop.done = 0;
  CHECK(pthread_mutex_init(&loop.mutex, NULL) == 0);
  for (t = 0; t < pool->numThreads; ++t)
    CHECK(pthread_create(&threads[t], NULL, runLoop, &loop) == 0);
  for (t = 0; t < pool->numThreads; ++t)
    CHECK(pthread_join(threads[t], NULL) == 0);
  pthread_mutex_destroy(&loop.mutex);
  CHECK(loop.done == n);
  ++pool->numLoops;
  pool->numCalls += n;
}

/* Rotates all tokens, and compares the outputs with the expected ones. */
static void check(void) {
  memset(qOut, 0xff, sizeof(qOut));
  memset(kOut, 0xff, sizeof(kOut));
  CHECK(rope_rope(q, k, positions, qOut, kOut, 1, kTokens) == 0);
  CHECK(memcmp(qOut, qExpected, sizeof(qOut)) == 0);
  CHECK(memcmp(kOut, kExpected, sizeof(kOut)) == 0);
  /* In place. */
  memcpy(qOut, q, sizeof(q));
  memcpy(kOut, k, sizeof(k));
  CHECK(rope_rope(qOut, kOut, positions, qOut, kOut, 1, kTokens) == 0);
  CHECK(memcmp(qOut, qExpected, sizeof(qOut)) == 0);
  CHECK(memcmp(kOut, kExpected, sizeof(kOut)) == 0);
}

static void *callAlone(void *arg) {
  static const int64_t at[4] = {1, 22, 333, 4444};
  float x[kRow], y[kRow], xOut[kRow], yOut[kRow], expected[kRow];
  int lane, i;
  int64_t position = at[*(int *)arg];
  for (lane = 0; lane < kRow; ++lane)
    x[lane] = y[lane] = (float)(lane + *(int *)arg);
  CHECK(rope_rope(x, y, &position, expected, yOut, 1, 1) == 0);
  for (i = 0; i < 2000; ++i) {
    CHECK(rope_rope(x, y, &position, xOut, yOut, 1, 1) == 0);
    CHECK(memcmp(xOut, expected, sizeof(xOut)) == 0);
    CHECK(memcmp(yOut, expected, sizeof(yOut)) == 0);
  }
  return NULL;
}

int main(int argc, char **argv) {
  static const int counts[] = {1, 2, 3, 5};
  struct Pool pool;
  pthread_t threads[4];
  int numbers[4];
  size_t i;
  int64_t token;
  for (i = 0; i < kTokens; ++i)
    positions[i] = 3 * (int64_t)i;
  fillFloats(q, kCount);
  fillFloats(k, kCount);

  /* Calls with one token, which is one task, give the expected results. */
  for (token = 0; token < kTokens; ++token)
    CHECK(rope_rope(q + token * kRow, k + token * kRow, positions + token,
                    qExpected + token * kRow, kExpected + token * kRow, 1,
                    1) == 0);
  check();
  for (i = 0; i < 4; ++i) {
    pool.numThreads = counts[i];
    pool.numLoops = pool.numCalls = 0;
    rope_set_parallel_for(parallelFor, &pool);
    check();
    CHECK(pool.numLoops == 2);
    CHECK(pool.numCalls > 2);
    /* A small call does not use the threads. */
    CHECK(rope_rope(q, k, positions, qOut, kOut, 1, 1) == 0);
    CHECK(pool.numLoops == 2);
  }
  rope_set_parallel_for(NULL, NULL);
  check();
  CHECK(pool.numLoops == 2);

  /* Several threads call the library at the same time. */
  for (i = 0; i < 4; ++i) {
    numbers[i] = (int)i;
    CHECK(pthread_create(&threads[i], NULL, callAlone, &numbers[i]) == 0);
  }
  for (i = 0; i < 4; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0);

  CHECK(argc == 2);
  FILE *file = fopen(argv[1], "wb");
  CHECK(file && fwrite(qExpected, sizeof(qExpected), 1, file) == 1 &&
        fclose(file) == 0);
  puts("ok");
  return 0;
}
