//===- Description.h - descriptions of arguments ------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_DESCRIPTION_H
#define POSENC_KERNEL_DESCRIPTION_H

#include "posenc/kernel/CallLayout.h"
#include "posenc/kernel/CpuFeatures.h"
#include "posenc/kernel/EntryStatus.h"

#include <stddef.h>
#include <stdint.h>

/* The constants that posenc-emit-c-interface makes for a function
 * (lib/Codegen/CPU/EmitDescription.cpp), and the words of a call: the inputs
 * and outputs (an address or a scalar each), then the sizes, then the terms
 * that follow from them, then for each tensor its strides in elements for all
 * dimensions but the last, whose stride is 1, then those of LastWord. The word
 * of an argument has the argument's number. */

typedef void (*Packed)(const int64_t *words, int64_t chunk, int64_t numChunks);

struct Argument {
  int64_t name;        /* offset into the names */
  int64_t code, bits;  /* of the element, as in DLPack */
  int64_t rank;        /* -1: a scalar */
  int64_t inPlace;     /* of an output: the input it may be, or -1 */
  int64_t strides;     /* the word of the first */
  int64_t dims;        /* the number of the first */
  int64_t isShapeOnly; /* of an input: its elements are never read */
};

struct Dim {
  int64_t word; /* that holds the size, or -1 */
  int64_t size; /* if it is static */
};

/* What must hold of the numbers of an input, as #posenc.bound says it. */
struct Bound {
  int64_t kind, input;
  int64_t lengths;     /* the input that has them, or -1 */
  struct Dim limit[2]; /* its factors */
  struct Dim each;     /* -1: none */
};

/* A polynomial of words, which ends with kSizeEnd; operands come first. */
struct Code {
  int64_t action, value;
};

/* As #posenc.term; the operands are offsets into the code, in numbers. */
struct Term {
  int64_t kind;
  int64_t operands[4];
};

/* As #posenc.relation. The message has the values of both sides, of the right
 * one first if they are swapped. */
struct Relation {
  int64_t kind, left, right;
  int64_t message; /* offset into the names */
  int64_t isSwapped;
};

/* What one variant does in a call. */
struct Kernel {
  Packed packed;
  int64_t chunkedBy; /* as below */
  /* 0: one, of chunks. Bit p: whether phase p has chunks that may run at the
   * same time; else it has one. At most 63. */
  int64_t numPhases, parallelPhases;
  int64_t isMeasured; /* whether kMeasuredWord is used */
};

struct Variant {
  /* Bits of PosencCpuFeature, and the family that the variant
   * is tuned for; 0: for any. */
  int64_t cpuFeatures;
  const struct Kernel *kernel;
};

struct Work;
/* Runs chunks that share memory, whose address goes into a word. */
typedef void (*RunShared)(struct Work *work, int64_t *word);

struct Description {
  const char *names; /* the function's first, each with its NUL */
  const struct Argument *arguments;
  const struct Dim *dims;
  /* -1, the scalar input that gives the size, or -2 less the term's number */
  const int64_t *sizes;
  const struct Variant *variants; /* best first */
  const struct Bound *bounds;
  const int64_t *code;
  const struct Term *terms;
  const struct Relation *relations;
  RunShared runShared; /* NULL: chunks share nothing on the stack */
  int64_t numInputs, numOutputs, numSizes, numWords, numVariants;
  int64_t numBounds, numTerms, numRelations;
  int64_t hasWorkspace;
  /* In the workspace, of any variant: what all chunks share, and what each has
   * of its own; multiples of kWorkspaceAlignment. */
  int64_t sharedBytes, scratchBytes;
};

static inline int64_t *getLastWord(const struct Description *description,
                                   int64_t *words, enum PosencLastWord which) {
  return &words[description->numWords - (int64_t)which];
}

static inline int64_t getNumArguments(const struct Description *description) {
  return description->numInputs + description->numOutputs;
}

/* Whether the kernel reads or writes elements of an argument. */
static inline int hasElements(const struct Argument *argument) {
  return argument->rank >= 0 && !argument->isShapeOnly;
}

static inline int64_t getSize(const struct Description *description,
                              const struct Argument *argument, int64_t dim,
                              const int64_t *words) {
  const struct Dim *it = &description->dims[argument->dims + dim];
  return it->word < 0 ? it->size : words[it->word];
}

/* The bytes of a tensor's elements. May wrap around only where another size is
 * 0. */
static inline uint64_t getTensorBytes(const struct Description *description,
                                      const struct Argument *argument,
                                      const int64_t *words) {
  uint64_t bytes = (uint64_t)argument->bits / 8;
  for (int64_t dim = 0; dim < argument->rank; ++dim)
    bytes *= (uint64_t)getSize(description, argument, dim, words);
  return bytes;
}

static inline int64_t getStride(const struct Argument *argument, int64_t dim,
                                const int64_t *words) {
  return dim + 1 == argument->rank ? 1 : words[argument->strides + dim];
}

/* Fills in the strides of a contiguous tensor. */
static inline void setContiguous(const struct Description *description,
                                 const struct Argument *argument,
                                 int64_t *words) {
  /* May wrap around only where another size is 0. */
  uint64_t stride = 1;
  for (int64_t dim = argument->rank - 1; dim > 0; --dim) {
    stride *= (uint64_t)getSize(description, argument, dim, words);
    words[argument->strides + dim - 1] = (int64_t)stride;
  }
}

#endif
