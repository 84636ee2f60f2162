/*===- machine.c - libc functions for a bare machine --------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Implements the functions of libc that the program needs. Bochs prints the
 * bytes that are written to port 0xe9. */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t size) {
  for (size_t i = 0; i < size; ++i)
    ((char *)to)[i] = ((const char *)from)[i];
  return to;
}

void *memset(void *to, int value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    ((char *)to)[i] = (char)value;
  return to;
}

static void put(char c) { __asm__ volatile("outb %0, $0xe9" : : "a"(c)); }

static void putNumber(uint64_t value, unsigned base, int digits) {
  char text[24];
  int count = 0;
  do {
    text[count++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value || count < digits);
  while (count)
    put(text[--count]);
}

/* Supports only `%d` and `%016llx`. */
int printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  for (; *format; ++format) {
    if (*format != '%') {
      put(*format);
    } else if (format[1] == 'd') {
      putNumber(va_arg(arguments, unsigned), 10, 1);
      ++format;
    } else {
      putNumber(va_arg(arguments, unsigned long long), 16, 16);
      format += 6;
    }
  }
  va_end(arguments);
  return 0;
}
