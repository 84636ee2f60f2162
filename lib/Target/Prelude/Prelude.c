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

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef void (*Body)(void *arg, int64_t i);
typedef void (*ParallelFor)(void *ctx, Body body, void *arg, int64_t n);
typedef void (*Packed)(const int64_t *words, int64_t chunk, int64_t numChunks);

/* What an entry knows of its arguments; made by posenc-emit-c-interface.
 * `words` are the inputs, outputs and sizes of a call. */
struct Description {
  int64_t cpuFeatures;
  int64_t isChunked;
  int64_t firstSize, numSizes; /* words */
  int64_t numTensors;
  int64_t tensors[]; /* struct Tensor, one behind the other */
};

struct Tensor {
  int64_t word;
  int64_t isOutput;
  int64_t inPlace;     /* word of the input it may be, or -1 */
  int64_t staticBytes; /* element size times the static sizes */
  int64_t numSizes;
  int64_t sizes[]; /* words */
};

enum { kOk, kNull, kSize, kOverlap, kCpu };

/* Less work than this is not worth waking a thread for. */
#define BYTES_PER_CHUNK (128 * 1024)
#define MAX_CHUNKS 256

static ParallelFor hostParallelFor;
static void *hostContext;

void setParallelFor(ParallelFor parallelFor,
                    void *context) __asm__("posenc.set_parallel_for");
int32_t launch(const struct Description *description, int64_t *words,
               Packed packed) __asm__("posenc.launch");

void setParallelFor(ParallelFor parallelFor, void *context) {
  hostParallelFor = parallelFor;
  hostContext = context;
}

static int64_t hasCpuFeatures(int64_t wanted) {
#if defined(__x86_64__)
  /* Bits of CpuFeature in include/posenc/Codegen/CInterface.h. */
  static int64_t known = -1;
  if (known < 0) {
    int64_t found = 0;
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE)) {
      unsigned leaf1 = c, low, high;
      __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      unsigned lzcnt = 0;
      if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        lzcnt = c & bit_LZCNT;
      if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        unsigned leaf1Wanted = bit_FMA | bit_MOVBE | bit_F16C | bit_AVX;
        unsigned leaf7Wanted = bit_AVX2 | bit_BMI | bit_BMI2;
        if ((low & 6) == 6 && lzcnt && (leaf1 & leaf1Wanted) == leaf1Wanted &&
            (b & leaf7Wanted) == leaf7Wanted)
          found |= 1;
        unsigned v4Wanted = bit_AVX512F | bit_AVX512BW | bit_AVX512CD |
                            bit_AVX512DQ | bit_AVX512VL;
        if ((found & 1) && (low & 0xe6) == 0xe6 && (b & v4Wanted) == v4Wanted)
          found |= 2;
        unsigned leaf7 = a;
        if ((found & 2) && leaf7 >= 1 &&
            __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16))
          found |= 4;
      }
    }
    known = found;
  }
  return (known & wanted) == wanted;
#else
  (void)wanted;
  return 1;
#endif
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

/* The bytes of a tensor, or -1 if they do not fit. */
static int64_t getBytes(const struct Tensor *tensor, const int64_t *words) {
  int64_t bytes = tensor->staticBytes;
  int64_t isEmpty = bytes == 0;
  for (int64_t i = 0; i < tensor->numSizes; ++i)
    isEmpty |= words[tensor->sizes[i]] == 0;
  if (isEmpty)
    return 0;
  for (int64_t i = 0; i < tensor->numSizes; ++i)
    if (__builtin_mul_overflow(bytes, words[tensor->sizes[i]], &bytes))
      return -1;
  return bytes;
}

static const struct Tensor *getNext(const struct Tensor *tensor) {
  return (const struct Tensor *)&tensor->sizes[tensor->numSizes];
}

/* Whether an output overlaps a tensor other than as it may. */
static int overlaps(const struct Tensor *output, int64_t outputBytes,
                    const struct Tensor *other, int64_t otherBytes,
                    const int64_t *words) {
  uint64_t a = (uint64_t)words[output->word];
  uint64_t b = (uint64_t)words[other->word];
  if (outputBytes == 0 || otherBytes == 0 || a + (uint64_t)outputBytes <= b ||
      b + (uint64_t)otherBytes <= a)
    return 0;
  return other->isOutput || output->inPlace != other->word || a != b;
}

int32_t launch(const struct Description *description, int64_t *words,
               Packed packed) {
  if (!hasCpuFeatures(description->cpuFeatures))
    return kCpu;
  for (int64_t i = 0; i < description->numSizes; ++i)
    if (words[description->firstSize + i] < 0)
      return kSize;

  const struct Tensor *first = (const struct Tensor *)description->tensors;
  const struct Tensor *tensor = first;
  int64_t outputTotal = 0;
  for (int64_t i = 0; i < description->numTensors;
       ++i, tensor = getNext(tensor)) {
    int64_t bytes = getBytes(tensor, words);
    if (bytes < 0)
      return kSize;
    if (bytes > 0 && words[tensor->word] == 0)
      return kNull;
    if (!tensor->isOutput)
      continue;
    outputTotal |= bytes;
    const struct Tensor *other = first;
    for (int64_t j = 0; j < description->numTensors;
         ++j, other = getNext(other)) {
      if (other == tensor)
        continue;
      int64_t otherBytes = getBytes(other, words);
      if (otherBytes < 0)
        return kSize;
      if (overlaps(tensor, bytes, other, otherBytes, words))
        return kOverlap;
    }
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
  struct Work work = {packed, words, numChunks};
  runAll(&work);
  return kOk;
}
