//===- check.c - the test of code.c ---------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

int clamp(int value, int low, int high);
int untested(int value);
int count(int n);

int main(void) {
  int wrong = clamp(1, 2, 4) != 2 || clamp(5, 2, 4) != 4 || clamp(3, 2, 4) != 3;
  return wrong || count(3) != 3 || count(0) || untested(1) == 1;
}
