/*===- workspace.c - kernels with a workspace argument ------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* The workspace of the attention in stack.mlir, through all entry points: with
 * exactly the required bytes, at any alignment, between inaccessible pages; and
 * too small, NULL, or overlapping a tensor. */

#include "guarded.h"

#include "stack.h"

#include "ffi.h"
#include "tensors.h"

typedef int EntryPoint(void *handle, const Any *args, int32_t count,
                       Any *result);
EntryPoint __tvm_ffi_stack_attention, __tvm_ffi_stack_decode;

enum { kTokens = 300, kQuery = kTokens * 4 * 128, kKey = kTokens * 2 * 128 };

static float q[kQuery], k[kKey], v[kKey], expected[kQuery], r[kQuery];

static void expectFailure(int32_t code, int32_t expectedCode,
                          const char *message, const char *text) {
  if (code != expectedCode || strcmp(message, text) != 0)
    fprintf(stderr, "%d %s\n", code, message);
  CHECK(code == expectedCode && strcmp(message, text) == 0);
}

int main(void) {
  int64_t bytes = stack_attention_workspace(1, kTokens, kTokens);
  int64_t short_ = bytes - 1, shape[] = {1, kTokens, 4, 128},
          keyShape[] = {1, kTokens, 2, 128}, matrix[2], strides[2];
  struct Guarded memory = makeGuarded((size_t)bytes + 64);
  char *exact = memory.begin + memory.size - bytes;
  DLTensor qt = makeTensor(q, kFloat, 32, 4, shape, NULL);
  DLTensor kt = makeTensor(k, kFloat, 32, 4, keyShape, NULL);
  DLTensor vt = makeTensor(v, kFloat, 32, 4, keyShape, NULL);
  DLTensor rt = makeTensor(r, kFloat, 32, 4, shape, NULL);
  DLTensor wt = makeTensor(exact, kUInt, 8, 1, &bytes, NULL);
  Any args[6], none;
  char message[200] = "", text[200];
  int offset;
  fillFloats(q, kQuery);
  fillFloats(k, kKey);
  fillFloats(v, kKey);

  /* The workspace grows with the sizes up to a bound. Invalid sizes need no
   * workspace. */
  CHECK(bytes > 0 && stack_attention_workspace(1, 1, 1) <= bytes);
  CHECK(stack_attention_workspace(1, 1 << 20, 1 << 20) ==
        stack_attention_workspace(64, 1 << 20, 1 << 20));
  CHECK(stack_attention_workspace(1, INT64_MAX, INT64_MAX) > 0);
  CHECK(stack_attention_workspace(1, -1, kTokens) == 0);
  CHECK(stack_attention(q, k, v, NULL, r, 1, -1, kTokens, NULL) == 2);
  CHECK(stack_attention(q, k, v, NULL, r, 0, kTokens, kTokens, NULL) == 0);

  for (offset = 0; offset < 64; offset += 7) {
    memset(r, 0, sizeof(r));
    CHECK(stack_attention(q, k, v, NULL, offset ? r : expected, 1, kTokens,
                          kTokens, exact - offset) == 0);
    CHECK(!offset || memcmp(r, expected, sizeof(r)) == 0);
  }
  memset(r, 0, sizeof(r));
  CHECK(stack_attention_dl(&qt, &kt, &vt, NULL, &rt, exact, message,
                           sizeof(message)) == 0);
  CHECK(memcmp(r, expected, sizeof(r)) == 0);
  args[0] = makePointer(&qt);
  args[1] = makePointer(&kt);
  args[2] = makePointer(&vt);
  args[3] = makePointer(&rt);
  args[4] = makePointer(&rt);
  args[5] = makePointer(&wt);
  memset(r, 0, sizeof(r));
  CHECK(__tvm_ffi_stack_attention(NULL, args, 6, NULL) == 0);
  CHECK(memcmp(r, expected, sizeof(r)) == 0);
  /* The workspace may have any rank. */
  matrix[0] = 1;
  matrix[1] = bytes;
  strides[0] = 12345;
  strides[1] = 1;
  wt = makeTensor(exact, kUInt, 8, 2, matrix, strides);
  CHECK(__tvm_ffi_stack_attention(NULL, args, 6, NULL) == 0);

  CHECK(stack_attention(q, k, v, NULL, r, 1, kTokens, kTokens, NULL) == 1);
  sprintf(text, "attention: the workspace is NULL, expected %ld bytes",
          (long)bytes);
  expectFailure(stack_attention_dl(&qt, &kt, &vt, NULL, &rt, NULL, message,
                                   sizeof(message)),
                1, message, text);
  expectFailure(stack_attention_dl(&qt, &kt, &vt, NULL, &rt, (char *)r + 8,
                                   message, sizeof(message)),
                3, message, "attention: the workspace overlaps r");
  expectFailure(stack_attention_dl(&qt, &kt, &vt, NULL, &rt,
                                   (char *)q - bytes + 1, message,
                                   sizeof(message)),
                3, message, "attention: the workspace overlaps q");
  CHECK(stack_attention(q, k, v, NULL, r, 1, kTokens, kTokens,
                        (void *)(UINTPTR_MAX - 5)) == 2);

#define EXPECT_ERROR(count, message)                                           \
  do {                                                                         \
    CHECK(__tvm_ffi_stack_attention(NULL, args, count, NULL) == -1);           \
    if (strcmp(lastMessage, message) != 0)                                     \
      fprintf(stderr, "%s\n", lastMessage);                                    \
    CHECK(strcmp(lastMessage, message) == 0);                                  \
  } while (0)
  EXPECT_ERROR(5, "attention: 5 arguments, expected 6");
  wt = makeTensor(exact, kUInt, 8, 1, &short_, NULL);
  sprintf(text, "attention: the workspace has %ld bytes, expected %ld",
          (long)short_, (long)bytes);
  EXPECT_ERROR(6, text);
  wt = makeTensor(exact, kFloat, 32, 1, &bytes, NULL);
  EXPECT_ERROR(6, "attention: the workspace has elements of type float32, "
                  "expected uint8");
  strides[0] = 2;
  wt = makeTensor(exact, kUInt, 8, 1, &bytes, strides);
  EXPECT_ERROR(6, "attention: the workspace is not contiguous");
  wt = makeTensor(exact, kUInt, 8, 1, &bytes, NULL);
  setDevice(&wt, 2);
  EXPECT_ERROR(6, "attention: the workspace is on a device of type 2, expected "
                  "the CPU, type 1");
  none = makeInteger(0);
  args[5] = none;
  EXPECT_ERROR(6, "attention: the workspace has type index 1, expected a "
                  "tensor");
  none.type = 0;
  args[5] = none;
  sprintf(text, "attention: the workspace has 0 bytes, expected %ld",
          (long)bytes);
  EXPECT_ERROR(6, text);
  puts("ok");
  return 0;
}
