//===- Prelude.c - the code that every kernel library contains --*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/* Compiled to LLVM bitcode with the project and linked into each library that
 * posenc-compile makes, and into what posenc-run compiles in memory. It has
 * no state but the host's parallel loop, allocates nothing, and calls nothing
 * but libgomp, and that only with POSENC_OPENMP. */

#include "Cpu.h"
#include "Description.h"
#include "View.h"

typedef void (*Body)(void *arg, int64_t i);
typedef void (*ParallelFor)(void *ctx, Body body, void *arg, int64_t n);

/* Less work than this is not worth waking a thread for. */
#define BYTES_PER_CHUNK (128 * 1024)
#define MAX_CHUNKS 256

static ParallelFor hostParallelFor;
static void *hostContext;

void setParallelFor(ParallelFor parallelFor,
                    void *context) __asm__("posenc.set_parallel_for");
int32_t launch(const struct Description *description,
               int64_t *words) __asm__("posenc.launch");

void setParallelFor(ParallelFor parallelFor, void *context) {
  hostParallelFor = parallelFor;
  hostContext = context;
}

struct Work {
  Packed packed;
  const int64_t *words;
  int64_t numChunks;
};

static void runChunk(void *arg, int64_t chunk) {
  const struct Work *work = arg;
  work->packed(work->words, chunk, work->numChunks);
}

#ifdef POSENC_OPENMP
extern void GOMP_parallel(void (*body)(void *), void *arg, unsigned numThreads,
                          unsigned flags);
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
extern int omp_get_max_threads(void);

static void runThread(void *arg) {
  const struct Work *work = arg;
  int64_t step = omp_get_num_threads();
  for (int64_t chunk = omp_get_thread_num(); chunk < work->numChunks;
       chunk += step)
    work->packed(work->words, chunk, work->numChunks);
}
#endif

static void runAll(struct Work *work) {
  if (work->numChunks > 1 && hostParallelFor) {
    hostParallelFor(hostContext, runChunk, work, work->numChunks);
    return;
  }
#ifdef POSENC_OPENMP
  if (work->numChunks > 1) {
    int64_t threads = omp_get_max_threads();
    if (threads > work->numChunks)
      threads = work->numChunks;
    /* A chunk a thread keeps each thread's memory in one piece. */
    work->numChunks = threads;
    if (threads > 1) {
      GOMP_parallel(runThread, work, (unsigned)threads, 0);
      return;
    }
  }
#endif
  work->numChunks = 1;
  work->packed(work->words, 0, 1);
}

/* Whether an output is the input that it may be, element by element. */
static int isSame(const struct Description *description, int64_t output,
                  int64_t input, const int64_t *words) {
  const struct Argument *a = &description->arguments[output];
  const struct Argument *b = &description->arguments[input];
  if (a->inPlace != input || words[output] != words[input])
    return 0;
  for (int64_t dim = 0; dim < a->rank; ++dim)
    if (getSize(description, a, dim, words) != 1 &&
        getStride(a, dim, words) != getStride(b, dim, words))
      return 0;
  return 1;
}

/* Checks a tensor's memory, against all others if it is an output. */
static int32_t checkMemory(const struct Description *description,
                           int64_t number, const int64_t *words,
                           struct View *view) {
  int32_t code = createView(description, number, words, view);
  if (code || view->isEmpty)
    return code;
  if (words[number] == 0)
    return kNull;
  if (number < description->numInputs)
    return kOk;
  if (!isInjective(view))
    return kOverlap;
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    if (i == number || description->arguments[i].rank < 0 ||
        isSame(description, number, i, words))
      continue;
    struct View other;
    code = createView(description, i, words, &other);
    if (code)
      return code;
    if (overlap(view, &other))
      return kOverlap;
  }
  return kOk;
}

int32_t launch(const struct Description *description, int64_t *words) {
  const struct Variant *variant = description->variants;
  const struct Variant *end = variant + description->numVariants;
  while (variant != end && !hasCpuFeatures(variant->cpuFeatures))
    ++variant;
  if (variant == end)
    return kCpu;
  int64_t numArguments = getNumArguments(description);
  for (int64_t i = 0; i < description->numSizes; ++i)
    if (words[numArguments + i] < 0)
      return kSize;

  int64_t outputTotal = 0;
  for (int64_t i = 0; i < numArguments; ++i)
    if (description->arguments[i].rank >= 0)
      setContiguous(description, &description->arguments[i], words);
  for (int64_t i = 0; i < numArguments; ++i) {
    if (description->arguments[i].rank < 0)
      continue;
    struct View view;
    int32_t code = checkMemory(description, i, words, &view);
    if (code)
      return code;
    if (i >= description->numInputs)
      outputTotal += getBytes(&view);
  }
  if (outputTotal == 0)
    return kOk;

  int64_t numChunks = 1;
  if (description->isChunked) {
    numChunks = outputTotal / BYTES_PER_CHUNK;
    numChunks = numChunks < 1            ? 1
                : numChunks > MAX_CHUNKS ? MAX_CHUNKS
                                         : numChunks;
  }
  struct Work work = {variant->packed, words, numChunks};
  runAll(&work);
  return kOk;
}
