/*===- misuse.c - wrong calls are refused -------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Makes one argument of a valid call after another invalid. Each time, every
 * entry point of the function must return an error with a message, and must not
 * write to memory. */

#include "rope.h"

#include "ffi.h"
#include "tensors.h"

enum { kBatch = 2, kTokens = 3, kHeads = 4, kDim = 64, kMaxTensors = 5 };
enum { kHidden = kHeads * kDim, kCount = kBatch * kTokens * kHidden };

/* Space for tensors that are shifted in either direction. */
static struct {
  float room[kCount], q[3 * kCount], k[3 * kCount], qOut[3 * kCount],
      kOut[3 * kCount];
  double x[kCount], xOut[kCount];
  int64_t positions[64];
  int32_t positions32[64];
} data, before;

typedef struct {
  DLTensor tensors[kMaxTensors];
  int64_t shapes[kMaxTensors][4], strides[kMaxTensors][4];
  int isMissing[kMaxTensors];
} Tensors;

typedef struct {
  const char *name;
  int numInputs, numTensors;
  int partner[kMaxTensors]; /* of an output: the input it may alias, or -1 */
  int32_t (*call)(const DLTensor *const *t, char *err, size_t errlen);
  int (*ffi)(void *, const Any *, int32_t, Any *);
  int32_t (*plain)(const Tensors *t);
} Function;

static int numCalls;

/*===----------------------------------------------------------------------===*\
 * Functions
\*===----------------------------------------------------------------------===*/

static int32_t callRope(const DLTensor *const *t, char *err, size_t errlen) {
  return rope_rope_dl(t[0], t[1], t[2], t[3], t[4], err, errlen);
}

static int32_t callInterleaved(const DLTensor *const *t, char *err,
                               size_t errlen) {
  return rope_interleaved_dl(t[0], t[1], t[2], err, errlen);
}

static int32_t callSincos(const DLTensor *const *t, char *err, size_t errlen) {
  return rope_sincos_dl(t[0], t[1], t[2], err, errlen);
}

static int32_t plainRope(const Tensors *t) {
  return rope_rope(
      (const float *)t->tensors[0].data, (const float *)t->tensors[1].data,
      (const int64_t *)t->tensors[2].data, (float *)t->tensors[3].data,
      (float *)t->tensors[4].data, t->shapes[0][0], t->shapes[0][1]);
}

static int32_t plainInterleaved(const Tensors *t) {
  return rope_interleaved((const double *)t->tensors[0].data,
                          (const int32_t *)t->tensors[1].data,
                          (double *)t->tensors[2].data, t->shapes[0][0]);
}

static int32_t plainSincos(const Tensors *t) {
  return rope_sincos((const int64_t *)t->tensors[0].data,
                     (float *)t->tensors[1].data, (float *)t->tensors[2].data,
                     t->shapes[0][0]);
}

static const Function functions[] = {
    {"rope",
     3,
     5,
     {-1, -1, -1, 0, 1},
     callRope,
     __tvm_ffi_rope_rope,
     plainRope},
    {"interleaved",
     2,
     3,
     {-1, -1, 0},
     callInterleaved,
     __tvm_ffi_rope_interleaved,
     plainInterleaved},
    {"sincos",
     1,
     3,
     {-1, -1, -1},
     callSincos,
     __tvm_ffi_rope_sincos,
     plainSincos},
};

/*===----------------------------------------------------------------------===*\
 * Valid calls
\*===----------------------------------------------------------------------===*/

static void setTensor(Tensors *t, int number, void *memory, int code, int bits,
                      const int64_t *shape, int rank) {
  int64_t stride = 1;
  int dim;
  for (dim = rank; dim-- > 0;) {
    t->shapes[number][dim] = shape[dim];
    t->strides[number][dim] = stride;
    stride *= shape[dim];
  }
  t->tensors[number] = makeTensor(memory, code, bits, rank, t->shapes[number],
                                  t->strides[number]);
}

/* Layout 0 is contiguous with strides, 1 contiguous without strides, 2 in
 * place, and 3 in place in rows of [q | k | v]. */
enum { kNumLayouts = 4 };
static void setValid(const Function *f, int layout, Tensors *t) {
  static const int64_t rope[] = {kBatch, kTokens, kHeads, kDim};
  static const int64_t rows[] = {kBatch * kTokens, kDim};
  static const int64_t tables[] = {kBatch * kTokens, kDim / 2};
  int i;
  memset(t, 0, sizeof(*t));
  if (f->call == callRope) {
    setTensor(t, 0, data.q, kFloat, 32, rope, 4);
    setTensor(t, 1, data.k, kFloat, 32, rope, 4);
    setTensor(t, 2, data.positions, kInt, 64, rope, 2);
    setTensor(t, 3, data.qOut, kFloat, 32, rope, 4);
    setTensor(t, 4, data.kOut, kFloat, 32, rope, 4);
  } else if (f->call == callInterleaved) {
    setTensor(t, 0, data.x, kFloat, 64, rows, 2);
    setTensor(t, 1, data.positions32, kInt, 32, rows, 1);
    setTensor(t, 2, data.xOut, kFloat, 64, rows, 2);
  } else {
    setTensor(t, 0, data.positions, kInt, 64, rows, 1);
    setTensor(t, 1, data.qOut, kFloat, 32, tables, 2);
    setTensor(t, 2, data.kOut, kFloat, 32, tables, 2);
  }
  if (layout == 3 && f->call == callRope) {
    t->tensors[1].data = data.q + kHidden;
    for (i = 0; i < 5; ++i)
      if (i != 2) {
        t->strides[i][1] = 3 * kHidden;
        t->strides[i][0] = kTokens * t->strides[i][1];
      }
  }
  for (i = 0; i < f->numTensors; ++i) {
    if (layout == 1)
      t->tensors[i].strides = NULL;
    if (layout >= 2 && f->partner[i] >= 0)
      t->tensors[i].data = t->tensors[f->partner[i]].data;
  }
}

/* Copies the tensors, which point into their own struct. */
static void copyTensors(Tensors *to, const Tensors *from) {
  int i;
  *to = *from;
  for (i = 0; i < kMaxTensors; ++i) {
    if (from->tensors[i].shape)
      to->tensors[i].shape = to->shapes[i];
    if (from->tensors[i].strides)
      to->tensors[i].strides = to->strides[i];
  }
}

/*===----------------------------------------------------------------------===*\
 * Expectations
\*===----------------------------------------------------------------------===*/

static void checkUntouched(const char *what) {
  if (memcmp(&data, &before, sizeof(data)) != 0)
    fprintf(stderr, "memory changed: %s\n", what);
  CHECK(memcmp(&data, &before, sizeof(data)) == 0);
}

static void expectFfiError(const Function *f, const Any *args, int32_t count,
                           const char *message) {
  Any result;
  memset(&result, 0x5a, sizeof(result));
  lastKind[0] = lastMessage[0] = 0;
  CHECK(f->ffi(NULL, args, count, &result) == -1);
  CHECK(strstr(lastKind, "Error") != NULL);
  CHECK(lastMessage[0] != 0);
  if (message)
    CHECK(strcmp(lastMessage, message) == 0);
  CHECK(result.type == 0x5a5a5a5a);
  checkUntouched(lastMessage);
}

static void expectRefused(const Function *f, const Tensors *t, int32_t code) {
  const DLTensor *arguments[kMaxTensors];
  Object objects[kMaxTensors];
  Any args[kMaxTensors];
  char message[200], shorter[200];
  size_t length, size;
  int32_t actual;
  int i;
  for (i = 0; i < f->numTensors; ++i) {
    arguments[i] = t->isMissing[i] ? NULL : &t->tensors[i];
    args[i] = makePointer(arguments[i]);
  }
  memset(message, '?', sizeof(message));
  actual = f->call(arguments, message, sizeof(message));
  length = strnlen(message, sizeof(message));
  if (actual != code)
    fprintf(stderr, "%s: expected %d, found %d: %.*s\n", f->name, (int)code,
            (int)actual, (int)length, message);
  CHECK(actual == code);
  CHECK(length > 0 && length < sizeof(message));
  CHECK(strncmp(message, f->name, strlen(f->name)) == 0);
  checkUntouched(message);
  ++numCalls;
  printf("%s\n", message);

  /* A message that is too long is truncated. */
  CHECK(f->call(arguments, NULL, 0) == code);
  CHECK(f->call(arguments, NULL, 100) == code);
  for (size = 0; size <= length + 1; size += size < 3 ? 1 : 7) {
    memset(shorter, '?', sizeof(shorter));
    CHECK(f->call(arguments, shorter, size) == code);
    if (size > 0) {
      CHECK(strlen(shorter) == (size <= length ? size - 1 : length));
      CHECK(strncmp(shorter, message, size - 1) == 0);
    }
    for (i = (int)size; i < (int)sizeof(shorter); ++i)
      CHECK(shorter[i] == '?');
  }
  checkUntouched(message);

  expectFfiError(f, args, f->numTensors, message);
  for (i = 0; i < f->numTensors; ++i)
    if (!t->isMissing[i])
      args[i] = makeObject(&objects[i], &t->tensors[i]);
  expectFfiError(f, args, f->numTensors, message);
}

static void expectPlainRefused(const Function *f, const Tensors *t,
                               int32_t code) {
  CHECK(f->plain(t) == code);
  checkUntouched("plain");
  ++numCalls;
}

/* Control: the valid call is accepted. */
static void expectAccepted(const Function *f, const Tensors *t, int layout) {
  const DLTensor *arguments[kMaxTensors];
  Any args[kMaxTensors], result;
  char message[200] = "?";
  int i;
  for (i = 0; i < f->numTensors; ++i) {
    arguments[i] = &t->tensors[i];
    args[i] = makePointer(arguments[i]);
  }
  /* Changes the input, so that each call changes the output. */
  ++data.positions[0];
  ++data.positions32[0];
  before = data;
  CHECK(f->call(arguments, message, sizeof(message)) == 0);
  CHECK(message[0] == 0);
  CHECK(memcmp(&data, &before, sizeof(data)) != 0);
  before = data;
  memset(&result, 0x5a, sizeof(result));
  lastKind[0] = 0;
  CHECK(f->ffi(NULL, args, f->numTensors, &result) == 0);
  CHECK(lastKind[0] == 0);
  CHECK(result.type == 0);
  if (layout < 3)
    CHECK(f->plain(t) == 0);
  before = data;
}

/*===----------------------------------------------------------------------===*\
 * Changes
\*===----------------------------------------------------------------------===*/

enum {
  kNull = 1,
  kSize,
  kOverlap,
  kDevice = 5,
  kType,
  kRank,
  kShape,
  kStride,
  kAlignment
};

#define FOR_EACH(type, value, ...)                                             \
  const type value##Values[] = {__VA_ARGS__};                                  \
  size_t value##I;                                                             \
  for (value##I = 0; value##I < sizeof(value##Values) / sizeof(type);          \
       ++value##I)

static void changeFields(const Function *f, const Tensors *valid, int i) {
  Tensors t;
  copyTensors(&t, valid);
  t.isMissing[i] = 1;
  expectRefused(f, &t, kNull);
  copyTensors(&t, valid);
  t.tensors[i].data = NULL;
  expectRefused(f, &t, kNull);
  t.tensors[i].byte_offset = 64;
  expectRefused(f, &t, kNull);
  copyTensors(&t, valid);
  t.tensors[i].shape = NULL;
  expectRefused(f, &t, kNull);
  {
    FOR_EACH(int32_t, device, 0, 2, 3, 4, 7, 8, 9, 10, 13, 14, -1, INT32_MAX,
             INT32_MIN) {
      copyTensors(&t, valid);
      setDevice(&t.tensors[i], deviceValues[deviceI]);
      expectRefused(f, &t, kDevice);
    }
  }
  {
    FOR_EACH(int32_t, rank, INT32_MIN, -1, 0, 1, 2, 3, 4, 5, 100, INT32_MAX) {
      copyTensors(&t, valid);
      if (t.tensors[i].ndim == rankValues[rankI])
        continue;
      t.tensors[i].ndim = rankValues[rankI];
      expectRefused(f, &t, kRank);
    }
  }
  {
    FOR_EACH(int, code, 0, 1, 2, 3, 4, 5, 6, 7, 17, 127, 128, 255) {
      copyTensors(&t, valid);
      if (t.tensors[i].dtype.code == codeValues[codeI])
        continue;
      t.tensors[i].dtype.code = (uint8_t)codeValues[codeI];
      expectRefused(f, &t, kType);
    }
  }
  {
    FOR_EACH(int, bits, 0, 1, 8, 16, 32, 64, 128, 255) {
      copyTensors(&t, valid);
      if (t.tensors[i].dtype.bits == bitsValues[bitsI])
        continue;
      t.tensors[i].dtype.bits = (uint8_t)bitsValues[bitsI];
      expectRefused(f, &t, kType);
    }
  }
  {
    FOR_EACH(int, lanes, 0, 2, 4, 65535) {
      copyTensors(&t, valid);
      t.tensors[i].dtype.lanes = (uint16_t)lanesValues[lanesI];
      expectRefused(f, &t, kType);
    }
  }
}

static void changeShape(const Function *f, const Tensors *valid, int i) {
  Tensors t;
  int dim;
  for (dim = 0; dim < valid->tensors[i].ndim; ++dim) {
    int64_t size = valid->shapes[i][dim];
    FOR_EACH(int64_t, value, -1, -size, INT64_MIN, INT64_MIN + 1, 0, size - 1,
             size + 1, 2 * size, size + ((int64_t)1 << 32), (int64_t)1 << 31,
             (int64_t)1 << 62, INT64_MAX) {
      copyTensors(&t, valid);
      t.shapes[i][dim] = valueValues[valueI];
      expectRefused(f, &t, valueValues[valueI] < 0 ? kSize : kShape);
    }
  }
}

static void changeStrides(const Function *f, const Tensors *valid, int i) {
  Tensors t;
  int rank = valid->tensors[i].ndim, dim;
  {
    FOR_EACH(int64_t, last, 0, 2, -1, 64, INT64_MAX, INT64_MIN) {
      copyTensors(&t, valid);
      t.strides[i][rank - 1] = lastValues[lastI];
      expectRefused(f, &t, kStride);
    }
  }
  for (dim = 0; dim + 1 < rank; ++dim) {
    {
      FOR_EACH(int64_t, huge, INT64_MAX, INT64_MAX / 2, INT64_MIN,
               INT64_MIN + 1, INT64_MIN / 2, (int64_t)1 << 61) {
        copyTensors(&t, valid);
        t.strides[i][dim] = hugeValues[hugeI];
        expectRefused(f, &t, kSize);
      }
    }
    if (i >= f->numInputs) {
      FOR_EACH(int64_t, small, 0, 1, -1, 15, 31, -31) {
        copyTensors(&t, valid);
        t.strides[i][dim] = smallValues[smallI];
        expectRefused(f, &t, kOverlap);
      }
    }
  }
}

static void changeAddress(const Function *f, const Tensors *valid, int i) {
  Tensors t;
  int bytes = valid->tensors[i].dtype.bits / 8, shift;
  uint64_t address = (uint64_t)(uintptr_t)valid->tensors[i].data;
  for (shift = 1; shift < bytes; ++shift) {
    copyTensors(&t, valid);
    t.tensors[i].byte_offset = (uint64_t)shift;
    expectRefused(f, &t, kAlignment);
    copyTensors(&t, valid);
    t.tensors[i].data = (char *)t.tensors[i].data + shift;
    expectRefused(f, &t, kAlignment);
  }
  {
    /* The data pointer or the end of the tensor overflows the address space. */
    FOR_EACH(uint64_t, offset, UINT64_MAX, UINT64_MAX - 7, 0 - address,
             0 - address + 64, 0 - address - 8, 0 - address - 16) {
      copyTensors(&t, valid);
      t.tensors[i].byte_offset = offsetValues[offsetI];
      expectRefused(f, &t, kSize);
    }
  }
}

static void changeOverlap(const Function *f, const Tensors *valid, int layout,
                          int i) {
  Tensors t;
  int other, dim;
  for (other = 0; other < f->numTensors; ++other) {
    int rank = valid->tensors[other].ndim;
    FOR_EACH(int, shift, 0, 1, -1, 15, -15) {
      if (other == i || (shiftValues[shiftI] == 0 && f->partner[i] == other))
        continue;
      copyTensors(&t, valid);
      /* Positions have few elements, so large shifts wrap. */
      t.tensors[i].data = (char *)t.tensors[other].data +
                          shiftValues[shiftI] %
                              (rank == valid->tensors[i].ndim ? 16 : 2) *
                              (t.tensors[i].dtype.bits / 8);
      expectRefused(f, &t, kOverlap);
      if (layout < 3)
        expectPlainRefused(f, &t, kOverlap);
    }
  }
  /* The memory of the input that may be aliased, in another order. */
  if (f->partner[i] < 0 || layout == 1)
    return;
  for (dim = 0; dim + 1 < valid->tensors[i].ndim; ++dim) {
    copyTensors(&t, valid);
    t.tensors[i].data = t.tensors[f->partner[i]].data;
    t.strides[i][dim] = 8 * t.strides[i][dim];
    expectRefused(f, &t, kOverlap);
    t.strides[i][dim] = -t.strides[i][dim];
    expectRefused(f, &t, kOverlap);
  }
}

/* Changes a size to the same wrong value in all tensors. */
static void changeAllSizes(const Function *f, const Tensors *valid,
                           int layout) {
  Tensors t;
  int numDynamic = f->call == callRope ? 2 : 1, dim, i;
  for (dim = 0; dim < numDynamic; ++dim) {
    FOR_EACH(int64_t, size, -1, -2, INT64_MIN, INT64_MIN + 1, INT64_MAX,
             INT64_MAX - 1, INT64_MAX / 2, (int64_t)1 << 62, (int64_t)1 << 61) {
      copyTensors(&t, valid);
      for (i = 0; i < f->numTensors; ++i)
        t.shapes[i][dim] = sizeValues[sizeI];
      expectRefused(f, &t, kSize);
      if (layout < 3)
        expectPlainRefused(f, &t, kSize);
    }
  }
}

static void changeFfiArguments(const Function *f, const Tensors *valid) {
  Any args[kMaxTensors + 1];
  int i;
  for (i = 0; i <= f->numTensors; ++i)
    args[i] = makePointer(&valid->tensors[i % f->numTensors]);
  for (i = -1; i <= f->numTensors + 1; ++i)
    if (i != f->numTensors)
      expectFfiError(f, args, i, NULL);
  expectFfiError(f, args, INT32_MIN, NULL);
  expectFfiError(f, args, INT32_MAX, NULL);
  for (i = 0; i < f->numTensors; ++i) {
    FOR_EACH(int32_t, type, -1, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 64, 65,
             66, 67, 68, 69, 71, 72, 73, INT32_MAX, INT32_MIN) {
      Any changed[kMaxTensors];
      memcpy(changed, args, sizeof(changed));
      changed[i].type = typeValues[typeI];
      expectFfiError(f, changed, f->numTensors, NULL);
      ++numCalls;
    }
  }
}

int main(void) {
  size_t n;
  int layout, i;
  fillFloats(&data.room[0], sizeof(data) / sizeof(float));
  for (n = 0; n < 64; ++n)
    data.positions[n] = data.positions32[n] = (int32_t)n;
  before = data;
  for (n = 0; n < sizeof(functions) / sizeof(*functions); ++n) {
    const Function *f = &functions[n];
    for (layout = 0; layout < kNumLayouts; ++layout) {
      Tensors valid, t;
      setValid(f, layout, &valid);
      expectAccepted(f, &valid, layout);
      for (i = 0; i < f->numTensors; ++i) {
        changeFields(f, &valid, i);
        changeShape(f, &valid, i);
        if (layout != 1)
          changeStrides(f, &valid, i);
        changeAddress(f, &valid, i);
        if (i >= f->numInputs)
          changeOverlap(f, &valid, layout, i);
        if (layout < 3) {
          copyTensors(&t, &valid);
          t.tensors[i].data = NULL;
          expectPlainRefused(f, &t, kNull);
        }
      }
      changeAllSizes(f, &valid, layout);
      changeFfiArguments(f, &valid);
      expectAccepted(f, &valid, layout);
    }
  }
  printf("%d calls refused\n", numCalls);
  return 0;
}
