//===- Description.h - descriptions of functions ------------------*- C -*-===//
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

/* The constants that posenc-emit-c-interface creates for a function, in the
 * layout of lib/ABI/EmitDescription.cpp. They describe the words of a call, in
 * this order:
 *  - the inputs and outputs, one address or scalar each: word i is argument i;
 *  - the dynamic sizes;
 *  - the terms, which are computed from sizes and scalars;
 *  - for each tensor, the strides in elements of all dimensions but the last,
 *    whose stride is 1;
 *  - the words of PosencLastWord. */

/* A kernel in the packed calling convention: runs one task of a call. */
typedef void (*Packed)(const int64_t *words, int64_t task, int64_t numTasks);

struct Argument {
  int64_t name;        /* offset into Description::names */
  int64_t code, bits;  /* element type, as in DLPack */
  int64_t rank;        /* -1 for a scalar */
  int64_t inPlace;     /* for an output, the input it may be, or -1 */
  int64_t strides;     /* index of the word of the first stride */
  int64_t dims;        /* index of the first of its Description::dims */
  int64_t isShapeOnly; /* for an input: its elements are never read */
  int64_t isSize; /* for an input tensor: sizes depend on its only element */
};

struct Dim {
  int64_t word; /* index of the word with the size, or -1 */
  int64_t size; /* the static size, if word is -1 */
};

/* A constraint on the values of an input, as in #posenc.bound. */
struct Bound {
  int64_t kind, input;
  int64_t lengths;     /* the input with sequence lengths, or -1 */
  struct Dim limit[2]; /* factors of the limit */
  struct Dim each; /* keys per page, number of sequences or of heads; or -1 */
};

/* An instruction of a size polynomial, a PosencSizeCode and its operand. A
 * polynomial is in postfix order and ends with kSizeEnd. */
struct Code {
  int64_t action, value;
};

/* As #posenc.term. The operands are offsets of polynomials in
 * Description::code, in int64_t. */
struct Term {
  int64_t kind;
  int64_t operands[4];
};

/* As #posenc.relation: two polynomials that must be equal, or ordered. The
 * message has the values of both sides as %d, the right one first with
 * isSwapped. */
struct Relation {
  int64_t kind, left, right;
  int64_t message; /* offset into Description::names */
  int64_t isSwapped;
};

/* The code of a variant. */
struct Kernel {
  Packed packed;
  int64_t taskCount; /* a PosencTaskCount */
  /* The number of phases, which run one after the other; 0 for a kernel without
   * phases. Bit p % 64 of parallelPhases[p / 64] tells whether phase p has
   * several tasks. */
  int64_t numPhases;
  const int64_t *parallelPhases;
  int64_t isMeasured; /* whether kMeasuredWord is used */
};

struct Variant {
  /* The required PosencCpuFeature bits, and above them the PosencCpuFamily that
   * the variant is tuned for, kCpuFamilyOther for none. */
  int64_t cpuFeatures;
  const struct Kernel *kernel;
};

struct Work;
/* Runs tasks with memory on the stack that they share, and stores its address
 * in *word. */
typedef void (*RunShared)(struct Work *work, int64_t *word);

struct Description {
  const char *names; /* NUL-terminated texts; the first is the function name */
  const struct Argument *arguments;
  const struct Dim *dims;
  /* For each dynamic size: the scalar input that is the size, -2 - t for the
   * size that term t computes, or -1. */
  const int64_t *sizes;
  const struct Variant *variants; /* best first */
  const struct Bound *bounds;
  const int64_t *code;
  const struct Term *terms;
  const struct Relation *relations;
  RunShared runShared; /* NULL if tasks share no memory on the stack */
  int64_t numInputs, numOutputs, numSizes, numWords, numVariants;
  int64_t numBounds, numTerms, numRelations;
  int64_t hasWorkspace;
  /* Bytes of the workspace that all tasks share, and bytes of each task; the
   * maximum over the variants, multiples of kWorkspaceAlignment. */
  int64_t sharedBytes, scratchBytes;
  /* Assertions, whose first failure is in kStatusWord, and the offset of their
   * messages in names, one after the other. */
  int64_t numAssertions, assertions;
  int64_t needsWeights; /* whether the kernel reads weights in a file */
};

static inline int64_t *getLastWord(const struct Description *description,
                                   int64_t *words, enum PosencLastWord which) {
  return &words[description->numWords - (int64_t)which];
}

static inline int64_t getNumArguments(const struct Description *description) {
  return description->numInputs + description->numOutputs;
}

/* Returns whether the kernel reads or writes elements of the argument. */
static inline int hasElements(const struct Argument *argument) {
  return argument->rank >= 0 && !argument->isShapeOnly;
}

static inline int64_t getSize(const struct Description *description,
                              const struct Argument *argument, int64_t dim,
                              const int64_t *words) {
  const struct Dim *it = &description->dims[argument->dims + dim];
  return it->word < 0 ? it->size : words[it->word];
}

/* Returns the bytes of a tensor. They may wrap around only if a size is 0. */
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

/* Sets the stride words of a contiguous tensor. */
static inline void setContiguous(const struct Description *description,
                                 const struct Argument *argument,
                                 int64_t *words) {
  /* May wrap around only if a size is 0. */
  uint64_t stride = 1;
  for (int64_t dim = argument->rank - 1; dim > 0; --dim) {
    stride *= (uint64_t)getSize(description, argument, dim, words);
    words[argument->strides + dim - 1] = (int64_t)stride;
  }
}

#endif
