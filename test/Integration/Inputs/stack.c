/*===- stack.c - kernels on threads of minimal stack size ---------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

/* Calls every function on a thread whose stack has the size in the metadata,
 * minus the first argument of the program, and a guard page below it; then with
 * tasks on several such threads. With WORKSPACE, attention functions take a
 * workspace. Prints the stack that each function needs and uses, and a hash of
 * its results. */

#include "guarded.h"

#include "stack.h"

#include <pthread.h>

enum { kTokens = 300, kQuery = kTokens * 4 * 128, kKey = kTokens * 2 * 128 };
enum { kSmall = 4 * 64, kThreads = 3 };

static float q[kQuery], k[kKey], v[kKey], a[kSmall], b[kTokens * kSmall];
static int64_t positions[kTokens], length = kTokens;
/* Results of the first call and of all others. */
static float r[2][kQuery], s[2][kSmall];

#ifdef WORKSPACE
static char *workspace;
#define WITH_WORKSPACE(function, ...) function(__VA_ARGS__, workspace)
#else
#define WITH_WORKSPACE(function, ...) function(__VA_ARGS__)
#endif

static int32_t attention(int i) {
  return WITH_WORKSPACE(stack_attention, q, k, v, NULL, r[i], 1, kTokens,
                        kTokens);
}
static int32_t decode(int i) {
  return WITH_WORKSPACE(stack_decode, q, k, v, &length, r[i], 1, kTokens);
}
static int32_t both(int i) {
  return WITH_WORKSPACE(stack_both, q, k, a, b, r[i], s[i], 1, kTokens, kTokens,
                        kTokens);
}
static int32_t rope(int i) {
  return stack_rope(q, positions, r[i], 1, kTokens);
}
static int32_t table(int i) { return stack_table(7, kTokens, r[i]); }

static const struct {
  const char *name;
  int32_t (*call)(int i);
} kFunctions[] = {{"attention", attention},
                  {"decode", decode},
                  {"both", both},
                  {"rope", rope},
                  {"table", table}};

/* Returns the stack size of a function in the metadata. */
static size_t readStackBytes(const char *name) {
  enum { kMinBytes = 16384 };
  char text[64];
  const char *at;
  size_t bytes;
  snprintf(text, sizeof(text), "\"name\":\"%s\",\"output_sizes\"", name);
  at = strstr(stack_metadata(), text);
  CHECK(at);
  at = strstr(at, "\"stack_bytes\":");
  CHECK(at);
  bytes = strtoul(at + strlen("\"stack_bytes\":"), NULL, 10);
  /* The minimum for a thread. */
  return bytes > kMinBytes ? bytes : kMinBytes;
}

/* Returns a hash of the results of the first call. */
static unsigned long getHash(void) {
  const unsigned char *parts[] = {(const unsigned char *)r[0],
                                  (const unsigned char *)s[0]};
  const size_t sizes[] = {sizeof(r[0]), sizeof(s[0])};
  unsigned long hash = 14695981039346656037u;
  size_t part, i;
  for (part = 0; part < 2; ++part)
    for (i = 0; i < sizes[part]; ++i)
      hash = (hash ^ parts[part][i]) * 1099511628211u;
  return hash;
}

struct Thread {
  pthread_t handle;
  struct Guarded memory;
  size_t bytes;
  void *(*run)(void *);
  void *argument;
};

static void start(struct Thread *thread, size_t bytes, void *(*run)(void *),
                  void *argument) {
  pthread_attr_t attributes;
  thread->bytes = bytes;
  thread->memory = makeGuarded(bytes);
  memset(thread->memory.begin, 0x5a, bytes);
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setstack(&attributes, thread->memory.begin, bytes) == 0);
  CHECK(pthread_create(&thread->handle, &attributes, run, argument) == 0);
}

/* Joins the thread and returns the number of stack bytes it used. */
static size_t finish(struct Thread *thread) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), unused = 0;
  CHECK(pthread_join(thread->handle, NULL) == 0);
  while (unused < thread->bytes && thread->memory.begin[unused] == 0x5a)
    ++unused;
  munmap(thread->memory.begin - page, thread->memory.size + 2 * page);
  return thread->bytes - unused;
}

static void *runCall(void *argument) {
  const int *number = argument;
  CHECK(kFunctions[*number].call(1) == 0);
  return NULL;
}

struct Share {
  void (*body)(void *arg, int64_t i);
  void *arg;
  int64_t first, n;
};

static void *runShare(void *argument) {
  const struct Share *share = argument;
  int64_t i;
  for (i = share->first; i < share->n; i += kThreads)
    share->body(share->arg, i);
  return NULL;
}

static size_t threadBytes, mostUsed;

static void runAll(void *ctx, void (*body)(void *arg, int64_t i), void *arg,
                   int64_t n) {
  struct Thread threads[kThreads];
  struct Share shares[kThreads];
  int i;
  (void)ctx;
  for (i = 0; i < kThreads; ++i) {
    struct Share share = {body, arg, i, n};
    shares[i] = share;
    start(&threads[i], threadBytes, runShare, &shares[i]);
  }
  for (i = 0; i < kThreads; ++i) {
    size_t used = finish(&threads[i]);
    mostUsed = used > mostUsed ? used : mostUsed;
  }
}

int main(int argc, char **argv) {
  size_t less = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
  int number, i;
  fillFloats(q, kQuery);
  fillFloats(k, kKey);
  fillFloats(v, kKey);
  fillFloats(a, kSmall);
  fillFloats(b, kTokens * kSmall);
  for (i = 0; i < kTokens; ++i)
    positions[i] = 3 * i;
#ifdef WORKSPACE
  {
    int64_t bytes = stack_attention_workspace(1, kTokens, kTokens);
    int64_t other = stack_decode_workspace(1, kTokens);
    bytes = other > bytes ? other : bytes;
    other = stack_both_workspace(1, kTokens, kTokens, kTokens);
    bytes = other > bytes ? other : bytes;
    /* The workspace may have any alignment. */
    workspace = (char *)malloc((size_t)bytes + 1) + 1;
  }
#endif
  for (number = 0; number < (int)(sizeof(kFunctions) / sizeof(*kFunctions));
       ++number) {
    struct Thread thread;
    const char *name = kFunctions[number].name;
    memset(r, 0, sizeof(r));
    memset(s, 0, sizeof(s));
    CHECK(kFunctions[number].call(0) == 0);
    threadBytes = (readStackBytes(name) - less) / 16 * 16;
    start(&thread, threadBytes, runCall, &number);
    mostUsed = finish(&thread);
    CHECK(memcmp(r[0], r[1], sizeof(r[0])) == 0);
    CHECK(memcmp(s[0], s[1], sizeof(s[0])) == 0);
    memset(r[1], 0, sizeof(r[1]));
    stack_set_parallel_for(runAll, NULL);
    CHECK(kFunctions[number].call(1) == 0);
    stack_set_parallel_for(NULL, NULL);
    CHECK(memcmp(r[0], r[1], sizeof(r[0])) == 0);
    printf("%s needs %lu, used %lu\n", name,
           (unsigned long)(threadBytes + less), (unsigned long)mostUsed);
    printf("%s bits %lx\n", name, getHash());
  }
  puts("ok");
  return 0;
}
