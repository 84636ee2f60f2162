/*===- main.c - serves two sequences from a paged cache ---------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* One attention layer of a server: two prompts of different lengths are
 * prefilled in one call, then both sequences decode 32 tokens together. Their
 * keys and values are in pages. Queries, keys and values are random numbers in
 * place of the projections of a model. Every output is compared with attention
 * of the whole sequences in one call, which uses no cache.
 *
 *   posenc-serve-example [--device=cpu|cuda|cuda:N] */

#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kSequences = 2,
  kPromptTokens = 45 + 19,
  kDecoded = 32,
  kTokens = kPromptTokens + kSequences * kDecoded,
  kPageSize = 16,
  kMaxPages = 5, /* pages of the longest sequence */
  kPages = kSequences * kMaxPages
};

static const int64_t prompts[kSequences] = {45, 19};

/* All tokens of sequence 0, then those of sequence 1. */
static float q[kTokens][kHeads][kDim];
static float k[kTokens][kKeyHeads][kDim], v[kTokens][kKeyHeads][kDim];
static float expected[kTokens][kHeads][kDim];

static float kPagesOf[kPages][kKeyHeads][kPageSize][kDim];
static float vPagesOf[kPages][kKeyHeads][kPageSize][kDim];

/* Page n of sequence b. The order is arbitrary, as after many requests. */
static int32_t blockTable[kSequences][kMaxPages] = {{7, 0, 9, 4, 2},
                                                    {3, 8, 1, 6, 5}};

/* The tokens of one call, of all sequences. */
static struct {
  float q[kPromptTokens][kHeads][kDim], o[kPromptTokens][kHeads][kDim];
  float k[kPromptTokens][kKeyHeads][kDim], v[kPromptTokens][kKeyHeads][kDim];
  int64_t positions[kPromptTokens], slots[kPromptTokens];
  int64_t source[kPromptTokens]; /* index among all tokens */
  int64_t count;
} batch;

/* Returns a number between -2 and 2. */
static float randomNumber(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)(int32_t)(state >> 32) * 0x1p-30f;
}

static void fill(float *numbers, size_t count) {
  for (size_t i = 0; i < count; ++i)
    numbers[i] = randomNumber();
}

/* Adds token `position` of sequence `b` to the batch. */
static void addToken(int b, int64_t first, int64_t position) {
  int64_t n = batch.count++, source = first + position;
  memcpy(batch.q[n], q[source], sizeof q[source]);
  memcpy(batch.k[n], k[source], sizeof k[source]);
  memcpy(batch.v[n], v[source], sizeof v[source]);
  batch.positions[n] = position;
  batch.slots[n] = (int64_t)blockTable[b][position / kPageSize] * kPageSize +
                   position % kPageSize;
  batch.source[n] = source;
}

/* Stores the keys and values of the batch and attends to the pages. `lengths`
 * are those of the sequences with their new tokens. Returns the largest error.
 */
static double step(const int64_t *cuSeqlens, const int64_t *lengths) {
  struct Pages pages = {&kPagesOf[0][0][0][0], &vPagesOf[0][0][0][0], kPages,
                        kPageSize};
  struct Sequences sequences = {kSequences, kMaxPages, cuSeqlens, lengths,
                                &blockTable[0][0]};
  appendTokens(&batch.k[0][0][0], &batch.v[0][0][0], batch.positions,
               batch.slots, batch.count, &pages);
  attendPages(&batch.q[0][0][0], batch.positions, &batch.o[0][0][0],
              batch.count, &pages, &sequences);
  double largest = 0;
  for (int64_t n = 0; n < batch.count; ++n)
    for (int h = 0; h < kHeads; ++h)
      for (int c = 0; c < kDim; ++c) {
        double difference = fabs((double)batch.o[n][h][c] -
                                 (double)expected[batch.source[n]][h][c]);
        /* A NaN must not compare as small. */
        if (!(difference <= largest))
          largest = difference;
      }
  return largest;
}

int main(int argc, char **argv) {
  static const char flag[] = "--device=";
  if (argc > 2 || (argc == 2 && (strncmp(argv[1], flag, sizeof flag - 1) ||
                                 !openDevice(argv[1] + sizeof flag - 1)))) {
    fprintf(stderr, "usage: posenc-serve-example "
                    "[--device=cpu|cuda|cuda:N]\n");
    return 2;
  }
  fill(&q[0][0][0], sizeof q / sizeof(float));
  fill(&k[0][0][0], sizeof k / sizeof(float));
  fill(&v[0][0][0], sizeof v / sizeof(float));
  int64_t firsts[kSequences + 1] = {0, prompts[0] + kDecoded, kTokens};
  static int64_t positions[kTokens];
  for (int b = 0; b < kSequences; ++b)
    for (int64_t t = firsts[b]; t < firsts[b + 1]; ++t)
      positions[t] = t - firsts[b];
  attendWhole(&q[0][0][0], &k[0][0][0], &v[0][0][0], positions, firsts,
              &expected[0][0][0], kTokens, kSequences);

  int64_t cuSeqlens[kSequences + 1] = {0}, lengths[kSequences];
  for (int b = 0; b < kSequences; ++b) {
    for (int64_t t = 0; t < prompts[b]; ++t)
      addToken(b, firsts[b], t);
    cuSeqlens[b + 1] = batch.count;
    lengths[b] = prompts[b];
  }
  double largest = step(cuSeqlens, lengths);

  for (int token = 0; token < kDecoded; ++token) {
    batch.count = 0;
    for (int b = 0; b < kSequences; ++b) {
      addToken(b, firsts[b], lengths[b]++);
      cuSeqlens[b + 1] = batch.count;
    }
    double difference = step(cuSeqlens, lengths);
    if (!(difference <= largest))
      largest = difference;
  }
  closeDevice();
  /* Twice the documented bound of f32 attention: both sides have an error. */
  double bound = 2 * (8 + 64) * 0x1p-23 * 2;
  int isRight = largest <= bound;
  printf("%d prompt tokens, %d decoded tokens, %s the bound\n", kPromptTokens,
         kSequences * kDecoded, isRight ? "within" : "beyond");
  if (!isRight)
    fprintf(stderr, "largest difference %g, bound %g\n", largest, bound);
  return !isRight;
}
