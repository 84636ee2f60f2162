/*===- signatures.c - arguments of every kind ---------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Tensors of i1, scalars of f32 and f64, and destinations of which only the
 * shape is used, through all entry points. */

#include "signatures.h"

#include "ffi.h"
#include "tensors.h"

typedef int Entry(void *handle, const Any *args, int32_t count, Any *result);
Entry __tvm_ffi_signatures_select, __tvm_ffi_signatures_attention,
    __tvm_ffi_signatures_fill;

enum { kBool = 6, kRows = 3, kColumns = 5, kCount = kRows * kColumns };

static Any makeReal(double real) {
  Any any = makeInteger(0);
  any.type = 3;
  memcpy(&any.value, &real, sizeof(real));
  return any;
}

static Any makeNone(void) {
  Any any = makeInteger(0);
  any.type = 0;
  return any;
}

static void expectFailure(int32_t code, int32_t expected, const char *message,
                          const char *text) {
  if (code != expected || strcmp(message, text) != 0)
    fprintf(stderr, "%d %s\n", code, message);
  CHECK(code == expected && strcmp(message, text) == 0);
}

/*===- i1 and scalars -----------------------------------------------------===*/

static uint8_t mask[kCount], column[kColumns], above[kCount];
static float x[kCount], y[kCount];
static const float scale = 0.75f, limit = 0.25f;
static const double bias = -40.125;

/* All bytes but 0 are true. */
static void checkSelected(void) {
  int i;
  for (i = 0; i < kCount; ++i) {
    float expected = mask[i] ? x[i] * scale + (float)(bias + 42) : 0;
    int isAbove = expected > limit;
    CHECK(y[i] == expected);
    CHECK(above[i] == (isAbove != (column[i % kColumns] != 0)));
  }
  memset(y, 0x55, sizeof(y));
  memset(above, 0x55, sizeof(above));
}

static void checkSelect(void) {
  int64_t shape[] = {kRows, kColumns}, short_[] = {kColumns - 1};
  DLTensor m = makeTensor(mask, kBool, 8, 2, shape, NULL);
  DLTensor in = makeTensor(x, kFloat, 32, 2, shape, NULL);
  DLTensor c = makeTensor(column, kUInt, 8, 1, shape + 1, NULL);
  DLTensor out = makeTensor(y, kFloat, 32, 2, shape, NULL);
  DLTensor bits = makeTensor(above, kBool, 8, 2, shape, NULL);
  Any args[11];
  char message[200] = "";
  int i;
  for (i = 0; i < kCount; ++i) {
    x[i] = (float)nextRandom();
    mask[i] = (uint8_t)(i % 3 == 0 ? 0 : 1 << (i % 8));
  }
  for (i = 0; i < kColumns; ++i)
    column[i] = (uint8_t)(i % 2 ? 0 : 0xfe);
  CHECK(signatures_select(mask, scale, x, bias, 20, 15, 7, column, limit, y,
                          above, kRows, kColumns) == 0);
  checkSelected();
  CHECK(signatures_select_dl(&m, scale, &in, bias, 20, 15, 7, &c, limit, &out,
                             &bits, message, sizeof(message)) == 0);
  checkSelected();
  args[0] = makePointer(&m);
  args[1] = makeReal(scale);
  args[2] = makePointer(&in);
  args[3] = makeReal(bias);
  args[4] = makeInteger(20);
  args[5] = makeInteger(15);
  args[6] = makeInteger(7);
  args[7] = makePointer(&c);
  args[8] = makeReal(limit);
  args[9] = makePointer(&out);
  args[10] = makePointer(&bits);
  CHECK(__tvm_ffi_signatures_select(NULL, args, 11, NULL) == 0);
  checkSelected();

  /* NaN is an ordinary scalar. */
  CHECK(signatures_select(mask, scale, x, NAN, 20, 15, 7, column, limit, y,
                          above, kRows, kColumns) == 0);
  CHECK(y[0] == 0 && y[1] != y[1] && above[1] == 0 && above[2] == 1);
  /* An integer converts to a floating-point scalar, but not the reverse. */
  args[3] = makeInteger(2);
  CHECK(__tvm_ffi_signatures_select(NULL, args, 11, NULL) == 0);
  CHECK(y[1] == x[1] * scale + 44);
  args[4] = makeReal(1);
  CHECK(__tvm_ffi_signatures_select(NULL, args, 11, NULL) == -1);
  CHECK(strcmp(lastMessage,
               "select: i has type index 3, expected an integer") == 0);
  args[4] = makeInteger(20);
  args[1] = makePointer(&m);
  CHECK(__tvm_ffi_signatures_select(NULL, args, 11, NULL) == -1);
  CHECK(strcmp(lastMessage,
               "select: scale has type index 7, expected a number") == 0);

  c.shape = short_;
  expectFailure(signatures_select_dl(&m, scale, &in, bias, 20, 15, 7, &c, limit,
                                     &out, &bits, message, sizeof(message)),
                8, message,
                "select: dimension 0 of column is 4, but dimension 1 of mask "
                "is 5");
  c.shape = shape + 1;
  m.dtype.code = kInt;
  expectFailure(signatures_select_dl(&m, scale, &in, bias, 20, 15, 7, &c, limit,
                                     &out, &bits, message, sizeof(message)),
                6, message,
                "select: mask has elements of type int8, expected bool8");
  m.dtype.code = kBool;
  bits.data = mask + 1;
  expectFailure(signatures_select_dl(&m, scale, &in, bias, 20, 15, 7, &c, limit,
                                     &out, &bits, message, sizeof(message)),
                3, message, "select: above overlaps mask");
  bits.data = above;
  m.data = NULL;
  expectFailure(signatures_select_dl(&m, scale, &in, bias, 20, 15, 7, &c, limit,
                                     &out, &bits, message, sizeof(message)),
                1, message, "select: the data of mask is NULL");
  CHECK(signatures_select(NULL, scale, x, bias, 20, 15, 7, column, limit, y,
                          above, kRows, kColumns) == 1);
}

/*===- Destinations -------------------------------------------------------===*/

enum { kTokens = 9, kQuery = kTokens * 8 * 64, kKey = kTokens * 2 * 64 };

static void checkAttention(void) {
  static float q[kQuery], k[kKey], v[kKey], expected[kQuery], r[kQuery],
      other[kQuery];
  static uint8_t seen[kTokens * kTokens];
  int64_t ofQuery[] = {1, kTokens, 8, 64}, ofKey[] = {1, kTokens, 2, 64};
  int64_t ofMask[] = {1, 1, kTokens, kTokens}, odd[] = {1, kTokens - 1, 8, 64};
  DLTensor qt = makeTensor(q, kFloat, 32, 4, ofQuery, NULL);
  DLTensor kt = makeTensor(k, kFloat, 32, 4, ofKey, NULL);
  DLTensor vt = makeTensor(v, kFloat, 32, 4, ofKey, NULL);
  DLTensor mt = makeTensor(seen, kBool, 8, 4, ofMask, NULL);
  DLTensor rt = makeTensor(r, kFloat, 32, 4, ofQuery, NULL);
  DLTensor ot = makeTensor(NULL, kFloat, 32, 4, ofQuery, NULL);
  Any args[6];
  char message[200] = "";
  int i;
  fillFloats(q, kQuery);
  fillFloats(k, kKey);
  fillFloats(v, kKey);
  for (i = 0; i < kTokens * kTokens; ++i)
    seen[i] = (uint8_t)(i % 4 == 1 ? 0 : 2 * (i % 4) + 4);
  CHECK(signatures_attention(q, k, v, seen, other, expected, 1, kTokens,
                             kTokens) == 0);
  CHECK(expected[0] == v[0]);
#define EXPECT_RESULT(call)                                                    \
  do {                                                                         \
    memset(r, 0x55, sizeof(r));                                                \
    CHECK((call) == 0);                                                        \
    CHECK(memcmp(r, expected, sizeof(r)) == 0);                                \
  } while (0)
#define PLAIN(o) signatures_attention(q, k, v, seen, o, r, 1, kTokens, kTokens)
#define CHECKED(o)                                                             \
  signatures_attention_dl(&qt, &kt, &vt, &mt, o, &rt, message, sizeof(message))
  EXPECT_RESULT(PLAIN(NULL));
  EXPECT_RESULT(PLAIN(r));
  EXPECT_RESULT(PLAIN(r + 1));
  EXPECT_RESULT(PLAIN(q));
  EXPECT_RESULT(PLAIN((const float *)((const char *)q + 1)));
  EXPECT_RESULT(CHECKED(&ot));
  EXPECT_RESULT(CHECKED(&rt));
  EXPECT_RESULT(CHECKED(&qt));
  EXPECT_RESULT(CHECKED(NULL));
  ot.data = (char *)r + 1;
  setDevice(&ot, 2);
  EXPECT_RESULT(CHECKED(&ot));
  ot = makeTensor(NULL, kFloat, 32, 4, ofQuery, NULL);
  args[0] = makePointer(&qt);
  args[1] = makePointer(&kt);
  args[2] = makePointer(&vt);
  args[3] = makePointer(&mt);
  args[5] = makePointer(&rt);
  args[4] = makePointer(&ot);
  EXPECT_RESULT(__tvm_ffi_signatures_attention(NULL, args, 6, NULL));
  args[4] = makePointer(&rt);
  EXPECT_RESULT(__tvm_ffi_signatures_attention(NULL, args, 6, NULL));
  args[4] = makePointer(NULL);
  EXPECT_RESULT(__tvm_ffi_signatures_attention(NULL, args, 6, NULL));
  args[4] = makeNone();
  EXPECT_RESULT(__tvm_ffi_signatures_attention(NULL, args, 6, NULL));
  args[3] = makeNone();
  CHECK(__tvm_ffi_signatures_attention(NULL, args, 6, NULL) == -1);
  CHECK(strcmp(lastMessage,
               "attention: m has type index 0, expected a tensor") == 0);

  /* The shape and type are checked, and no other argument may be NULL. */
  ot.shape = odd;
  expectFailure(CHECKED(&ot), 8, message,
                "attention: dimension 1 of o is 8, but dimension 1 of q is 9");
  ot.shape = ofQuery;
  ot.dtype.bits = 64;
  expectFailure(CHECKED(&ot), 6, message,
                "attention: o has elements of type float64, expected float32");
  qt.data = NULL;
  expectFailure(CHECKED(NULL), 1, message, "attention: the data of q is NULL");
  CHECK(signatures_attention(NULL, k, v, seen, r, r, 1, kTokens, kTokens) == 1);
  CHECK(signatures_attention(q, k, v, seen, NULL, q, 1, kTokens, kTokens) == 3);
}

static void checkFill(void) {
  float r[7];
  int64_t seven = 7, eight = 8;
  DLTensor rt = makeTensor(r, kFloat, 32, 1, &seven, NULL);
  DLTensor ot = makeTensor(NULL, kFloat, 32, 1, &seven, NULL);
  char message[200] = "";
  CHECK(signatures_fill(2.5f, NULL, r, 7) == 0);
  CHECK(r[0] == 2.5f && r[6] == 2.5f);
  CHECK(signatures_fill_dl(-1.5f, &ot, &rt, message, sizeof(message)) == 0);
  CHECK(r[0] == -1.5f && r[6] == -1.5f);
  CHECK(signatures_fill_dl(0.5f, NULL, &rt, message, sizeof(message)) == 0);
  CHECK(r[0] == 0.5f && r[6] == 0.5f);
  ot.shape = &eight;
  expectFailure(signatures_fill_dl(0, &ot, &rt, message, sizeof(message)), 8,
                message,
                "fill: dimension 0 of r is 7, but dimension 0 of o is 8");
  expectFailure(signatures_fill_dl(0, NULL, NULL, message, sizeof(message)), 1,
                message, "fill: r is NULL");
}

int main(void) {
  checkSelect();
  checkAttention();
  checkFill();
  puts("ok");
  return 0;
}
