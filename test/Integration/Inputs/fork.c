/*===- fork.c - a kernel in a child of a process with threads ------------===*\
|*                                                                            *|
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.        *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "rope.h"

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { kTokens = 2999, kRow = 4 * 64, kCount = kTokens * kRow };

static float q[kCount], k[kCount], expected[2][kCount], found[2][kCount];
static int64_t positions[kTokens];

static int run(float (*out)[kCount]) {
  return rope_rope(q, k, positions, out[0], out[1], 1, kTokens);
}

/* Runs a kernel in a forked child. An alarm stops the child if it waits for
 * threads that only the parent has. */
static void runInChild(void) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(60);
    _exit(run(found) != 0 || memcmp(found, expected, sizeof(found)) != 0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  int i;
  for (i = 0; i < kCount; ++i) {
    q[i] = (float)(i % 1013) / 7;
    k[i] = (float)(i % 911) / 5;
  }
  for (i = 0; i < kTokens; ++i)
    positions[i] = i;
  CHECK(run(expected) == 0);
  runInChild();
  /* The parent's threads still work. */
  CHECK(run(found) == 0);
  CHECK(memcmp(found, expected, sizeof(found)) == 0);
  puts("ok");
  return 0;
}
