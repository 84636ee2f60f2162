/*===- ffi.c - calls through the C ABI of TVM FFI -----------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Scalars and tensors through all entry points. With NO_TVM_FFI, no TVM FFI is
 * linked that could record errors. */

#include "table.h"

#include "ffi.h"
#include "tensors.h"

enum { kRows = 5, kDim = 16, kCount = kRows * kDim };

static float expected[kCount], rows[kCount], before[kCount];
static int64_t shape[] = {kRows, kDim};

static void expectError(const Any *args, int32_t count, const char *kind,
                        const char *message) {
  fillFloats(rows, kCount);
  memcpy(before, rows, sizeof(rows));
  CHECK(__tvm_ffi_table_table(NULL, args, count, NULL) == -1);
  CHECK(memcmp(rows, before, sizeof(rows)) == 0);
#ifdef NO_TVM_FFI
  (void)kind;
  (void)message;
#else
  if (strcmp(lastMessage, message) != 0)
    fprintf(stderr, "expected %s, found %s\n", message, lastMessage);
  CHECK(strcmp(lastKind, kind) == 0);
  CHECK(strcmp(lastMessage, message) == 0);
#endif
}

static void checkTensors(const DLTensor *tensor) {
  char message[100] = "?";
  memset(rows, 0, sizeof(rows));
  CHECK(table_table_dl(-7, kRows, tensor, message, sizeof(message)) == 0);
  CHECK(message[0] == 0);
  CHECK(memcmp(rows, expected, sizeof(rows)) == 0);
  CHECK(table_table_dl(-7, kRows - 1, tensor, message, sizeof(message)) == 8);
  CHECK(strcmp(message, "table: dimension 0 of rows is 5, but n is 4") == 0);
  CHECK(table_table_dl(-7, -1, tensor, message, sizeof(message)) == 2);
  CHECK(strcmp(message, "table: n is negative: -1") == 0);
  CHECK(table_table_dl(-7, kRows, NULL, NULL, 0) == 1);
}

static void checkFfi(const DLTensor *tensor) {
  Object object;
  Any args[3], result;
  args[0] = makeInteger(-7);
  args[1] = makeInteger(kRows);
  args[2] = makePointer(tensor);
  memset(rows, 0, sizeof(rows));
  CHECK(__tvm_ffi_table_table(NULL, args, 3, NULL) == 0);
  CHECK(memcmp(rows, expected, sizeof(rows)) == 0);
  args[2] = makeObject(&object, tensor);
  memset(rows, 0, sizeof(rows));
  memset(&result, 0x5a, sizeof(result));
  CHECK(__tvm_ffi_table_table(rows, args, 3, &result) == 0);
  CHECK(memcmp(rows, expected, sizeof(rows)) == 0);
  CHECK(result.type == 0 && result.padding == 0 && result.value.integer == 0);

  expectError(args, 2, "TypeError", "table: 2 arguments, expected 3");
  expectError(args, 4, "TypeError", "table: 4 arguments, expected 3");
  expectError(NULL, 0, "TypeError", "table: 0 arguments, expected 3");
  args[1] = makeInteger(kRows + 1);
  expectError(args, 3, "ValueError",
              "table: dimension 0 of rows is 5, but n is 6");
  args[1] = makeInteger(INT64_MIN);
  expectError(args, 3, "ValueError",
              "table: n is negative: -9223372036854775808");
  args[1] = makePointer(tensor);
  expectError(args, 3, "TypeError",
              "table: n has type index 7, expected an integer");
  args[1] = makeInteger(kRows);
  args[0] = makeInteger((int64_t)1 << 31);
  expectError(args, 3, "TypeError",
              "table: first is beyond 32 bits: 2147483648");
  args[0] = makeInteger(-7);
  args[2] = makeInteger(0);
  expectError(args, 3, "TypeError",
              "table: rows has type index 1, expected a tensor");
  args[2] = makePointer(NULL);
  expectError(args, 3, "ValueError", "table: rows is NULL");
  object.tensor.dtype.code = kInt;
  args[2] = makePointer(&object.tensor);
  expectError(args, 3, "TypeError",
              "table: rows has elements of type int32, expected float32");
}

int main(void) {
  DLTensor tensor = makeTensor(rows, kFloat, 32, 2, shape, NULL);
  CHECK(table_table(-7, kRows, expected) == 0);
  CHECK(expected[0] != 0 && expected[kCount - 1] != 0);
  checkTensors(&tensor);
  checkFfi(&tensor);
  puts("ok");
  return 0;
}
