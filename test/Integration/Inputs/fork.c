/*===- fork.c - kernels in children of processes with and without threads -===*\
|*                                                                            *|
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.        *|
|* See LICENSE for license information.                                       *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "a.h"
#include "b.h"

#include "check.h"

#include <dirent.h>
#include <dlfcn.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kTokens = 2999, kRow = 4 * 64, kCount = kTokens * kRow };

static float q[kCount], k[kCount], out[2][kCount], expected[2][kCount];
static int64_t positions[kTokens];
static int isExpected; /* whether `expected` has the results */

static void checkResults(int code) {
  CHECK(code == 0);
  CHECK(!isExpected || memcmp(out, expected, sizeof(out)) == 0);
}

static void runA(void) {
  memset(out, 0, sizeof(out));
  checkResults(a_rope(q, k, positions, out[0], out[1], 1, kTokens));
}

static void runB(void) {
  memset(out, 0, sizeof(out));
  checkResults(b_rope(q, k, positions, out[0], out[1], 1, kTokens));
}

static void runForeign(void) {
  int count = 0;
#pragma omp parallel reduction(+ : count)
  count += 1;
  CHECK(count > 1);
}

/* The threads of the process. */
static int countThreads(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  CHECK(folder != NULL);
  while (readdir(folder))
    ++count;
  closedir(folder);
  return count - 2; /* less "." and ".." */
}

/* Calls a function in a child, and one in a child of that. An alarm stops a
 * child that waits for threads of its parent. */
static void runInChildren(void (*function)(void), int threads, int depth) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(60);
    if (depth > 0)
      runInChildren(function, threads, depth - 1);
    function();
    _exit(countThreads() != threads);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A library with kernels that was unloaded watches forks no more. */
static void unload(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  CHECK(dlclose(library) == 0);
  CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL);
}

int main(int count, char **arguments) {
  int i, threads = omp_get_max_threads();
  CHECK(count == 3);
  for (i = 0; i < kCount; ++i) {
    q[i] = (float)(i % 1013) / 7;
    k[i] = (float)(i % 911) / 5;
  }
  for (i = 0; i < kTokens; ++i)
    positions[i] = i;
  unload(arguments[1]);
  if (strcmp(arguments[2], "foreign") == 0) {
    runForeign();
  } else {
    /* A server that forks before it computes: its children have all threads. */
    runInChildren(runA, threads, 1);
    runInChildren(runB, threads, 1);
    runA();
    memcpy(expected, out, sizeof(out));
    isExpected = 1;
  }
  CHECK(countThreads() == threads);
  runInChildren(runA, 1, 1);
  runInChildren(runB, 1, 1);
  /* The parent's threads still work. */
  runA();
  puts("ok");
  return 0;
}
