/*===- device.h - calls of the kernels on a CPU or a GPU --------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* The server's calls of its kernels. All pointers are to host memory. On a GPU,
 * the pages stay in its memory after the first call; other inputs and the
 * outputs are copied. An error ends the program with a message and exit code 1.
 */

#ifndef POSENC_EXAMPLES_SERVE_DEVICE_H
#define POSENC_EXAMPLES_SERVE_DEVICE_H

#include <stdint.h>

enum { kHeads = 8, kKeyHeads = 2, kDim = 64 };

/* The pages of all sequences. */
struct Pages {
  float *k, *v; /* [count][kKeyHeads][size][kDim] */
  int64_t count, size;
};

/* The sequences of a call. */
struct Sequences {
  int64_t count, maxPages;
  const int64_t *cuSeqlens;  /* [count + 1] */
  const int64_t *lengths;    /* [count] */
  const int32_t *blockTable; /* [count][maxPages] */
};

/* Selects `cpu`, `cuda` or `cuda:N`. Returns 0 for other names. */
int openDevice(const char *name);

/* Frees the memory on the device. */
void closeDevice(void);

/* Attention of whole sequences without a cache. */
void attendWhole(const float *q, const float *k, const float *v,
                 const int64_t *positions, const int64_t *cuSeqlens, float *o,
                 int64_t tokens, int64_t sequences);

/* Stores keys and values of tokens in the pages. */
void appendTokens(const float *k, const float *v, const int64_t *positions,
                  const int64_t *slots, int64_t tokens,
                  const struct Pages *pages);

/* Attention of the newest tokens of all sequences to the pages. */
void attendPages(const float *q, const int64_t *positions, float *o,
                 int64_t tokens, const struct Pages *pages,
                 const struct Sequences *sequences);

#endif
