//===- Report.h - error messages of calls -------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_REPORT_H
#define POSENC_KERNEL_REPORT_H

#include "Description.h"
#include "posenc/kernel/DlTensor.h"

/* A call of an entry point, and the buffer for its error message. */
struct Call {
  const struct Description *description;
  int64_t *words;
  char *message; /* may be NULL */
  size_t size, used;
  int32_t deviceType;            /* required DLDeviceType of tensors */
  const int64_t *workspaceBytes; /* size of the workspace; NULL if unknown */
  /* Whether each word of a value, size or term is known, for getOutputSizes();
   * NULL if all are. */
  int64_t *known;
};

static void putText(struct Call *call, const char *text) {
  for (; *text; ++text)
    if (call->message && call->used + 1 < call->size)
      call->message[call->used++] = *text;
}

static void putNumber(struct Call *call, int64_t number) {
  char digits[24];
  char *at = digits + sizeof(digits);
  *--at = 0;
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  do
    *--at = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0)
    *--at = '-';
  putText(call, at);
}

/* Packs a DLDataType into a value for the format %t. */
static int64_t packType(int64_t code, int64_t bits, int64_t lanes) {
  return code | bits << 8 | lanes << 16;
}

static void putType(struct Call *call, int64_t type) {
  static const char *const names[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  int64_t code = type & 0xff, lanes = type >> 16;
  if (code < (int64_t)(sizeof(names) / sizeof(*names))) {
    putText(call, names[code]);
  } else if (code == kDLFloat8_e4m3fn || code == kDLFloat8_e5m2) {
    putText(call, code == kDLFloat8_e4m3fn ? "float8_e4m3fn" : "float8_e5m2");
    putText(call, " of bits ");
  } else {
    putText(call, "type code ");
    putNumber(call, code);
    putText(call, " of bits ");
  }
  putNumber(call, type >> 8 & 0xff);
  if (lanes != 1) {
    putText(call, "x");
    putNumber(call, lanes);
  }
}

/* Writes the name of the function and a message, and returns `code`. The format
 * consumes `values` in order: %n is the name of the argument with that index,
 * %d a number, and %t an element type of packType. %% is a percent sign. */
static int32_t fail(struct Call *call, int32_t code, const char *format,
                    const int64_t *values) {
  if (!call->message || call->size == 0)
    return code;
  const struct Description *description = call->description;
  putText(call, description->names);
  putText(call, ": ");
  for (; *format; ++format) {
    if (*format != '%' || format[1] == '%') {
      char text[] = {*format, 0};
      format += *format == '%';
      putText(call, text);
      continue;
    }
    int64_t value = *values++;
    ++format;
    if (*format == 'n')
      putText(call, description->names + description->arguments[value].name);
    else if (*format == 't')
      putType(call, value);
    else
      putNumber(call, value);
  }
  call->message[call->used] = 0;
  return code;
}

/* The values for the format of fail(). */
#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

#endif
