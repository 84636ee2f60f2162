/*===- bytes.c - i8 and f8 tensors --------------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "bytes.h"

#include "tensors.h"

typedef int32_t EntryPoint(const DLTensor *, const DLTensor *, char *, size_t);

static void run(EntryPoint *entryPoint, const char *name, const uint8_t *codes,
                int code, int bits) {
  uint8_t bytes[8];
  float wide[4];
  int64_t size = 4;
  char message[256] = "";
  memcpy(bytes, codes, 4);
  DLTensor x = makeTensor(bytes, code, bits, 1, &size, NULL);
  DLTensor y = makeTensor(wide, kFloat, 32, 1, &size, NULL);
  if (entryPoint(&x, &y, message, sizeof(message))) {
    printf("%s\n", message);
    return;
  }
  printf("%s:", name);
  for (int i = 0; i < 4; ++i) {
    if (wide[i] != wide[i])
      printf(" nan");
    else
      printf(" %.12g", (double)wide[i]);
  }
  printf("\n");
}

int main(void) {
  enum { kE4M3FN = 10, kE5M2 = 12 };
  const uint8_t e4m3[] = {0x7e, 0xfe, 0x01, 0xff};
  const uint8_t e5m2[] = {0x7b, 0xfb, 0x01, 0xfe};
  const uint8_t i8[] = {0x7e, 0xfe, 0x01, 0x7f};
  run(bytes_e4m3_dl, "e4m3", e4m3, kE4M3FN, 8);
  run(bytes_e4m3_dl, "e4m3 as bytes", e4m3, kUInt, 8);
  run(bytes_e4m3_dl, "e4m3", e4m3, kE5M2, 8);
  run(bytes_e4m3_dl, "e4m3", e4m3, kInt, 8);
  run(bytes_e5m2_dl, "e5m2", e5m2, kE5M2, 8);
  run(bytes_e5m2_dl, "e5m2 as bytes", e5m2, kUInt, 8);
  run(bytes_e5m2_dl, "e5m2", e5m2, kFloat, 16);
  run(bytes_i8_dl, "i8", i8, kInt, 8);
  run(bytes_i8_dl, "i8", i8, kUInt, 8);
  const char *types[] = {"\"dtype\":\"f8E4M3FN\"", "\"dtype\":\"f8E5M2\"",
                         "\"dtype\":\"i8\""};
  for (int i = 0; i < 3; ++i)
    printf("%s%s", strstr(bytes_metadata(), types[i]) ? types[i] : "none",
           i < 2 ? " " : "\n");
  return 0;
}
