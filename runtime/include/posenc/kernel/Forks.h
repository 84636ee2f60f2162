//===- Forks.h - threads that a forked process lacks --------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_FORKS_H
#define POSENC_KERNEL_FORKS_H

/* libgomp waits forever, or faults, in the child of a process whose thread had
 * used it: the child has a copy of that thread alone, and libgomp's memory has
 * the others. Anything in the process may have used libgomp, so the number of
 * threads at the fork decides. Every kernel library has this code and state,
 * and so has the compiler, for kernels in memory. */

#ifdef __cplusplus
#include <fcntl.h>
#include <unistd.h>
#else
/* Declared here, as headers of libc are not available for each target. */
extern int open(const char *path, int flags, ...);
extern long read(int file, void *buffer, unsigned long size);
extern int close(int file);
extern int getpid(void);
extern int getppid(void);
#endif

/* Whether the process was forked from one that had several threads, or descends
 * from such a child. */
static int posencLacksThreads;
/* As of the start of a fork: whether the process has several threads; and its
 * id if the one that forks is its first, else 0. */
static int posencHasThreads, posencForkedBy;

/* Reads a number. Returns the position behind it. */
static inline long posencReadNumber(const char *text, long i, long size,
                                    long *number) {
  *number = 0;
  for (; i < size && text[i] >= '0' && text[i] <= '9'; ++i)
    *number = 10 * *number + (text[i] - '0');
  return i;
}

/* Reads the status of a process from /proc. Returns its number of threads, 0 if
 * it has ended or there is no such file. This allocates no memory, because it
 * runs during forks. */
static inline long posencCountThreads(const char *path, long *id) {
  const int readOnly = 0, closeOnExec = 02000000;
  /* The first 20 fields: the name of the program and numbers of 20 digits. */
  char text[512];
  int file = open(path, readOnly | closeOnExec);
  if (file < 0)
    return 0;
  long size = read(file, text, sizeof(text));
  close(file);
  posencReadNumber(text, 0, size, id);
  /* The name is the second field, in parentheses, and may contain any byte. */
  long i = size;
  while (i > 0 && text[i - 1] != ')')
    --i;
  if (i < 1 || size - i < 2 || text[i + 1] == 'Z' || text[i + 1] == 'X')
    return 0;
  int field = 2;
  for (; i < size && field < 20; ++i)
    field += text[i] == ' ';
  long count;
  posencReadNumber(text, i, size, &count);
  return count;
}

static inline void posencBeforeFork(void) {
  long id = 0;
  int hasThreads = posencCountThreads("/proc/thread-self/stat", &id) != 1;
  __atomic_store_n(&posencHasThreads, hasThreads, __ATOMIC_RELAXED);
  int process = getpid();
  __atomic_store_n(&posencForkedBy, id == process ? process : 0,
                   __ATOMIC_RELAXED);
}

/* Whether the parent has one thread, which forked this process: libgomp keeps
 * its threads as long as the one that uses them, so it had none. Libraries such
 * as OpenBLAS end theirs when a fork begins, and may do so after
 * posencBeforeFork() has counted them. */
static inline int posencHasParentOneThread(void) {
  int parent = posencForkedBy;
  if (parent == 0)
    return 0;
  char path[32] = "/proc/", digits[20];
  int numDigits = 0, end = 6;
  for (int rest = parent; rest > 0; rest /= 10)
    digits[numDigits++] = (char)('0' + rest % 10);
  while (numDigits > 0)
    path[end++] = digits[--numDigits];
  for (const char *name = "/stat"; *name; ++name)
    path[end++] = *name;
  long id;
  /* The id is that of another process if the parent has ended. */
  return posencCountThreads(path, &id) == 1 && getppid() == parent;
}

static inline void posencAfterForkInChild(void) {
  if (posencHasThreads && !posencHasParentOneThread())
    posencLacksThreads = 1;
}

#endif
