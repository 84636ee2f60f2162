//===- Text.h - text that a terminal can print --------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_TEXT_H
#define POSENC_KERNEL_TEXT_H

#include <stddef.h>

/* Messages contain names from files. In a terminal, control characters among
 * them would move the cursor, change what was printed before, or answer as if
 * the user typed. Messages have them as `\xNN`. */

/* Returns the number of bytes of the first character of a text in UTF-8, or 0
 * if it is a control character or invalid. */
static inline size_t posencGetPrintable(const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  unsigned char first = bytes[0];
  if (first < 0x80)
    return first >= 0x20 && first != 0x7f;
  size_t length = first < 0xc2   ? 0
                  : first < 0xe0 ? 2
                  : first < 0xf0 ? 3
                  : first < 0xf5 ? 4
                                 : 0;
  if (length == 0 || length > size)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((bytes[i] & 0xc0) != 0x80)
      return 0;
  /* U+0080 to U+009F are the second set of control characters. */
  return first == 0xc2 && bytes[1] < 0xa0 ? 0 : length;
}

#endif
