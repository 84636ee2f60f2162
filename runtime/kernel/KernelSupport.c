//===- KernelSupport.c - the code that every kernel library contains --*-- C
//--*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/* Compiled to LLVM bitcode with the project and linked into each library that
 * posenc-compile makes, and into what posenc-run compiles in memory. It has
 * no state but the host's parallel loop, the process whose threads it uses and
 * what it knows of GPUs, allocates nothing, and calls nothing but libgomp and
 * getpid, and these only with POSENC_OPENMP; for GPUs the driver, which it
 * opens, and TVM FFI, which it looks for where a call by its ABI fails. */

#include "Cpu.h"
#include "Cuda.h"
#include "Indices.h"
#include "Memory.h"
#include "Tensors.h"
#include "TvmFfi.h"
#include "Vulkan.h"
#include "Workspace.h"

typedef void (*Body)(void *arg, int64_t i);
typedef void (*ParallelFor)(void *ctx, Body body, void *arg, int64_t n);

/* Less work than this is not worth waking a thread for. */
#define BYTES_PER_CHUNK (128 * 1024)
#define MAX_CHUNKS 256
/* Each chunk has a part of a workspace, which must not grow without bounds. */
#define MAX_WORKSPACE_CHUNKS 64

static ParallelFor hostParallelFor;
static void *hostContext;

void setParallelFor(ParallelFor parallelFor,
                    void *context) __asm__("posenc.set_parallel_for");
void runShared(struct Work *work, int64_t *word) __asm__("posenc.run_shared");
void runSmallShared(struct Work *work,
                    int64_t *word) __asm__("posenc.run_small_shared");
int64_t getWorkspace(const struct Description *description,
                     int64_t *words) __asm__("posenc.get_workspace");
int32_t launch(const struct Description *description,
               int64_t *words) __asm__("posenc.launch");
int32_t launchTensors(const struct Description *description,
                      const int64_t *arguments, int64_t *words, char *message,
                      size_t size) __asm__("posenc.launch_tensors");
int32_t launchFfi(const struct Description *description, const struct Any *args,
                  int32_t count, struct Any *result, int64_t *arguments,
                  int64_t *words) __asm__("posenc.launch_ffi");

void setParallelFor(ParallelFor parallelFor, void *context) {
  hostParallelFor = parallelFor;
  hostContext = context;
}

struct Work {
  const struct Description *description;
  const struct Kernel *kernel;
  int64_t *words;
  int64_t numChunks;
};

/* Stores past the cache are in no order with those by which a thread says that
 * it is done. */
static void finishStores(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

static void runChunk(void *arg, int64_t chunk) {
  const struct Work *work = arg;
  work->kernel->packed(work->words, chunk, work->numChunks);
  finishStores();
}

#ifdef POSENC_OPENMP
extern void GOMP_parallel(void (*body)(void *), void *arg, unsigned numThreads,
                          unsigned flags);
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
extern int omp_get_max_threads(void);
extern int getpid(void);

/* A child of fork has none of its parent's threads, for which libgomp would
 * wait: once a process has used threads, its children do without. */
static int mayUseThreads(void) {
  static int owner;
  int self = getpid(), seen = 0;
  return __atomic_compare_exchange_n(&owner, &seen, self, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED) ||
         seen == self;
}

static void runThread(void *arg) {
  const struct Work *work = arg;
  int64_t step = omp_get_num_threads();
  for (int64_t chunk = omp_get_thread_num(); chunk < work->numChunks;
       chunk += step)
    work->kernel->packed(work->words, chunk, work->numChunks);
  finishStores();
}
#endif

static void runAll(struct Work *work) {
  if (work->numChunks > 1 && hostParallelFor) {
    hostParallelFor(hostContext, runChunk, work, work->numChunks);
    return;
  }
#ifdef POSENC_OPENMP
  if (work->numChunks > 1) {
    int64_t threads = omp_get_max_threads();
    if (threads > work->numChunks)
      threads = work->numChunks;
    /* A chunk a thread keeps each thread's memory in one piece. */
    work->numChunks = threads;
    if (threads > 1 && mayUseThreads()) {
      GOMP_parallel(runThread, work, (unsigned)threads, 0);
      return;
    }
  }
#endif
  work->numChunks = 1;
  work->kernel->packed(work->words, 0, 1);
  finishStores();
}

/* Runs all chunks, of one phase after the other. */
static void runPhases(struct Work *work) {
  const struct Kernel *kernel = work->kernel;
  if (kernel->numPhases == 0) {
    runAll(work);
    return;
  }
  int64_t numChunks = work->numChunks;
  int64_t *phase = getLastWord(work->description, work->words, kPhaseWord);
  for (int64_t i = 0; i < kernel->numPhases; ++i) {
    *phase = i;
    work->numChunks = kernel->parallelPhases >> i & 1 ? numChunks : 1;
    runAll(work);
  }
}

static inline __attribute__((always_inline)) void
runWith(struct Work *work, int64_t *word, char *shared) {
  *word = (int64_t)(uintptr_t)shared;
  runPhases(work);
}

/* Apart, so that only kernels that need it have so large a frame. */
void runShared(struct Work *work, int64_t *word) {
  _Alignas(64) char shared[kSharedBytes];
  runWith(work, word, shared);
}

void runSmallShared(struct Work *work, int64_t *word) {
  _Alignas(64) char shared[kSmallSharedBytes];
  runWith(work, word, shared);
}

/* The best variant that the CPU can run, or NULL. */
static const struct Kernel *findKernel(const struct Description *description) {
  int64_t best =
      chooseVariant(description->variants, description->numVariants, findCpu());
  return best < 0 ? NULL : description->variants[best].kernel;
}

/* The bytes that tell how much work there is: those of the outputs, of the
 * inputs that no output may be, or of both. */
static int64_t getWorkBytes(const struct Description *description,
                            const struct Kernel *kernel, const int64_t *words) {
  int64_t numArguments = getNumArguments(description);
  int64_t first =
      kernel->chunkedBy == kTasksByOutputs ? description->numInputs : 0;
  int64_t end = kernel->chunkedBy == kTasksByInputs ? description->numInputs
                                                    : numArguments;
  uint64_t total = 0;
  for (int64_t i = first; i < end; ++i) {
    const struct Argument *argument = &description->arguments[i];
    int isInPlace = 0;
    for (int64_t j = description->numInputs; j < numArguments; ++j)
      isInPlace |= description->arguments[j].inPlace == i;
    if (hasElements(argument) && !isInPlace)
      total += getTensorBytes(description, argument, words);
  }
  return (int64_t)total;
}

/* The most chunks of a call with these sizes. */
static int64_t getNumChunks(const struct Description *description,
                            const struct Kernel *kernel, const int64_t *words) {
  if (!kernel->chunkedBy)
    return 1;
  int64_t most = description->hasWorkspace ? MAX_WORKSPACE_CHUNKS : MAX_CHUNKS;
  int64_t count = getWorkBytes(description, kernel, words) / BYTES_PER_CHUNK;
  return count < 1 ? 1 : count > most ? most : count;
}

/* The bytes of a workspace for calls with the sizes that are in the words. */
int64_t getWorkspace(const struct Description *description, int64_t *words) {
  int64_t numArguments = getNumArguments(description);
  const struct Kernel *kernel = findKernel(description);
  if (!kernel)
    return 0; /* the call refuses it */
  int64_t numChunks = getNumChunks(description, kernel, words);
  for (int64_t i = 0; i < description->numSizes; ++i) {
    if (description->sizes[i] != -1)
      numChunks = MAX_WORKSPACE_CHUNKS; /* it may follow from a scalar */
    else if (words[numArguments + i] < 0)
      return 0; /* as above */
  }
  int64_t measured = 0;
  if (kernel->isMeasured) {
    struct Call call = {description, words, NULL, 0, 0, kDLCPU, NULL};
    if (bindTerms(&call))
      return 0; /* as above */
    measured = measure(description, kernel, words);
    if (measured < 0)
      return 0;
  }
  return getWorkspaceBytes(description, numChunks, measured);
}

/* Runs the kernel on what is in the words, if its memory is as it should. */
static int32_t run(struct Call *call, const struct Kernel *kernel) {
  const struct Description *description = call->description;
  int64_t outputBytes;
  int32_t code = checkMemory(call, &outputBytes);
  if (!code)
    code = checkIndices(call);
  if (code || outputBytes == 0)
    return code;
  int64_t numChunks = getNumChunks(description, kernel, call->words);
  if (description->hasWorkspace) {
    int64_t measured = measure(description, kernel, call->words);
    if (measured < 0)
      return fail(call, kEntrySize, "sizes multiply beyond 63 bits", NULL);
    code = bindWorkspace(
        call, getWorkspaceBytes(description, numChunks, measured), measured);
    if (code)
      return code;
  }
  struct Work work = {description, kernel, call->words, numChunks};
  if (description->runShared)
    description->runShared(&work,
                           getLastWord(description, call->words, kSharedWord));
  else
    runPhases(&work);
  return kEntryOk;
}

/* The words have all but the strides. */
int32_t launch(const struct Description *description, int64_t *words) {
  const struct Kernel *kernel = findKernel(description);
  if (!kernel)
    return kEntryCpu;
  for (int64_t i = 0; i < description->numSizes; ++i)
    if (description->sizes[i] >= -1 && words[getSizeWord(description, i)] < 0)
      return kEntrySize;
  struct Call call = {description, words, NULL, 0, 0, kDLCPU, NULL};
  int32_t code = bindTerms(&call);
  if (code)
    return code;
  for (int64_t i = 0; i < getNumArguments(description); ++i)
    if (description->arguments[i].rank >= 0)
      setContiguous(description, &description->arguments[i], words);
  return run(&call, kernel);
}

static int32_t runTensors(struct Call *call, const int64_t *arguments) {
  const struct Kernel *kernel = findKernel(call->description);
  if (!kernel)
    return fail(call, kEntryCpu,
                "the CPU lacks an instruction set that the library was "
                "compiled for",
                NULL);
  int32_t code = bindArguments(call, arguments);
  return code ? code : run(call, kernel);
}

/* The arguments are DLTensor pointers and scalars; there is room for the
 * words. */
int32_t launchTensors(const struct Description *description,
                      const int64_t *arguments, int64_t *words, char *message,
                      size_t size) {
  struct Call call = {description, words, message, size, 0, kDLCPU, NULL};
  if (message && size > 0)
    *message = 0;
  return runTensors(&call, arguments);
}

/* There is room for the arguments of launchTensors and the words. */
int32_t launchFfi(const struct Description *description, const struct Any *args,
                  int32_t count, struct Any *result, int64_t *arguments,
                  int64_t *words) {
  char message[256] = "";
  struct Call call = {description, words,  message, sizeof(message),
                      0,           kDLCPU, NULL};
  int64_t workspaceBytes;
  int32_t code =
      unpackArguments(&call, args, count, arguments, &workspaceBytes);
  if (!code)
    code = runTensors(&call, arguments);
  if (!code && result)
    *result = (struct Any){.type = kFfiNone};
  return raise(&call, code);
}
