//===- KernelSupport.c - the kernel support library -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/* Compiled to LLVM bitcode with the project and linked into each library that
 * posenc-compile writes and into the modules that posenc-run compiles in
 * memory. It allocates no memory. Its only state is the parallel_for of the
 * host, whether the process lacks threads of the one that forked it, the loaded
 * GPU kernels, and the mapped file of weights. It calls libgomp and what tells
 * it of forks (only with POSENC_OPENMP), the CUDA driver, which it opens at run
 * time, and TVM FFI, to report an error of a call by its ABI. */

#include "Cpu.h"
#include "Cuda.h"
#include "CudaFfi.h"
#include "Indices.h"
#include "Memory.h"
#include "OutputSizes.h"
#include "Tensors.h"
#include "TvmFfi.h"
#include "Vulkan.h"
#include "Weights.h"
#include "Workspace.h"
#ifdef POSENC_OPENMP
#include "posenc/kernel/Forks.h"
#endif

typedef void (*Body)(void *arg, int64_t i);
typedef void (*ParallelFor)(void *ctx, Body body, void *arg, int64_t n);

/* The minimum bytes of a task; less is not worth waking a thread for. */
#define BYTES_PER_TASK (128 * 1024)
#define MAX_TASKS 256
/* The limit for functions with a workspace, which has memory for each task. */
#define MAX_WORKSPACE_TASKS 64

static ParallelFor hostParallelFor;
static void *hostContext;

void setParallelFor(ParallelFor parallelFor,
                    void *context) __asm__("posenc.set_parallel_for");
void runShared(struct Work *work, int64_t *word) __asm__("posenc.run_shared");
void runSmallShared(struct Work *work,
                    int64_t *word) __asm__("posenc.run_small_shared");
int64_t getWorkspace(const struct Description *description,
                     int64_t *words) __asm__("posenc.get_workspace");
int32_t getOutputSizes(const struct Description *description, int64_t *words,
                       int64_t *known, const int64_t *inputs,
                       const void *const *values, int64_t *outputs,
                       char *message,
                       size_t size) __asm__("posenc.get_output_sizes");
int32_t launch(const struct Description *description,
               int64_t *words) __asm__("posenc.launch");
int32_t launchTensors(const struct Description *description,
                      const int64_t *arguments, int64_t *words, char *message,
                      size_t size) __asm__("posenc.launch_tensors");
int32_t launchFfi(const struct Description *description, const struct Any *args,
                  int32_t count, struct Any *result, int64_t *arguments,
                  int64_t *words,
                  FfiFunction onCuda) __asm__("posenc.launch_ffi");

int32_t openWeights(const struct WeightsFile *file, const char *path,
                    char *message, size_t size) __asm__("posenc.open_weights");
void closeWeights(void) __asm__("posenc.close_weights");

void setParallelFor(ParallelFor parallelFor, void *context) {
  hostParallelFor = parallelFor;
  hostContext = context;
}

/* A parallel loop: the tasks of a kernel, or of one of its phases. */
struct Work {
  const struct Description *description;
  const struct Kernel *kernel;
  int64_t *words;
  int64_t numTasks;
};

/* Orders non-temporal stores before those that signal the end of a task. */
static void finishStores(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

static void runTask(void *arg, int64_t task) {
  const struct Work *work = arg;
  work->kernel->packed(work->words, task, work->numTasks);
  finishStores();
}

#ifdef POSENC_OPENMP
extern void GOMP_parallel(void (*body)(void *), void *arg, unsigned numThreads,
                          unsigned flags);
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
extern int omp_get_max_threads(void);
extern int __register_atfork(void (*prepare)(void), void (*parent)(void),
                             void (*child)(void), void *library);
extern void __cxa_finalize(void *library);

/* Identifies the handlers of this library. Its address is used instead of that
 * of __dso_handle, which only a linker with the startup files of C defines. */
static char forkHandlers;

/* Runs when the library is loaded, and so before any fork that it can see. The
 * loader does not know code in memory, which JitLibrary.cpp serves. */
__attribute__((constructor)) static void watchForks(void) {
  __register_atfork(posencBeforeFork, NULL, posencAfterForkInChild,
                    &forkHandlers);
}

/* Removes the handlers, as the code of a static library may be unloaded with
 * the library that it is linked into. */
__attribute__((destructor)) static void unwatchForks(void) {
  __cxa_finalize(&forkHandlers);
}

/* Returns the number of threads that a loop may use. */
static int64_t getMaxThreads(void) {
  return posencLacksThreads ? 1 : omp_get_max_threads();
}

static void runThread(void *arg) {
  const struct Work *work = arg;
  int64_t step = omp_get_num_threads();
  for (int64_t task = omp_get_thread_num(); task < work->numTasks; task += step)
    work->kernel->packed(work->words, task, work->numTasks);
  finishStores();
}
#endif

/* Runs all tasks of one phase. */
static void runAll(struct Work *work) {
  if (work->numTasks > 1 && hostParallelFor) {
    hostParallelFor(hostContext, runTask, work, work->numTasks);
    return;
  }
#ifdef POSENC_OPENMP
  if (work->numTasks > 1) {
    int64_t threads = getMaxThreads();
    if (threads > work->numTasks)
      threads = work->numTasks;
    /* One task per thread, so that each thread accesses contiguous memory. */
    work->numTasks = threads;
    if (threads > 1) {
      GOMP_parallel(runThread, work, (unsigned)threads, 0);
      return;
    }
  }
#endif
  work->numTasks = 1;
  work->kernel->packed(work->words, 0, 1);
  finishStores();
}

/* Runs all tasks, one phase after the other. */
static void runPhases(struct Work *work) {
  const struct Kernel *kernel = work->kernel;
  if (kernel->numPhases == 0) {
    runAll(work);
    return;
  }
  int64_t numTasks = work->numTasks;
  int64_t *phase = getLastWord(work->description, work->words, kPhaseWord);
  for (int64_t i = 0; i < kernel->numPhases; ++i) {
    *phase = i;
    uint64_t word = (uint64_t)kernel->parallelPhases[i / 64];
    work->numTasks = word >> i % 64 & 1 ? numTasks : 1;
    runAll(work);
  }
}

static inline __attribute__((always_inline)) void
runWith(struct Work *work, int64_t *word, char *shared) {
  *word = (int64_t)(uintptr_t)shared;
  runPhases(work);
}

/* Separate functions, so that only kernels that need it have a large frame. */
void runShared(struct Work *work, int64_t *word) {
  _Alignas(64) char shared[kSharedBytes];
  runWith(work, word, shared);
}

void runSmallShared(struct Work *work, int64_t *word) {
  _Alignas(64) char shared[kSmallSharedBytes];
  runWith(work, word, shared);
}

/* Returns the best variant that the CPU can run, or NULL. */
static const struct Kernel *findKernel(const struct Description *description) {
  int64_t best =
      findVariant(description->variants, description->numVariants, findCpu());
  return best < 0 ? NULL : description->variants[best].kernel;
}

/* Returns the bytes that determine the number of tasks: those of the outputs,
 * of the inputs that no output may replace, or of both. */
static int64_t getWorkBytes(const struct Description *description,
                            const struct Kernel *kernel, const int64_t *words) {
  int64_t numArguments = getNumArguments(description);
  int64_t first =
      kernel->taskCount == kTasksByOutputs ? description->numInputs : 0;
  int64_t end = kernel->taskCount == kTasksByInputs ? description->numInputs
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

/* Returns the maximum number of tasks of a call with these sizes. */
static int64_t getNumTasks(const struct Description *description,
                           const struct Kernel *kernel, const int64_t *words) {
  if (kernel->taskCount == kOneTask)
    return 1;
  int64_t max = description->hasWorkspace ? MAX_WORKSPACE_TASKS : MAX_TASKS;
  int64_t count = getWorkBytes(description, kernel, words) / BYTES_PER_TASK;
  return count < 1 ? 1 : count > max ? max : count;
}

/* Returns the bytes of workspace for calls with the sizes in the words, 0 if a
 * call with these sizes would fail. */
int64_t getWorkspace(const struct Description *description, int64_t *words) {
  int64_t numArguments = getNumArguments(description);
  const struct Kernel *kernel = findKernel(description);
  if (!kernel)
    return 0; /* the call fails */
  int64_t numTasks = getNumTasks(description, kernel, words);
  for (int64_t i = 0; i < description->numSizes; ++i) {
    if (description->sizes[i] != -1)
      numTasks = MAX_WORKSPACE_TASKS; /* the size may depend on a scalar */
    else if (words[numArguments + i] < 0)
      return 0; /* the call fails */
  }
  int64_t measured = 0;
  if (kernel->isMeasured) {
    struct Call call = {description, words, NULL, 0, 0, kDLCPU, NULL, NULL};
    if (bindTerms(&call))
      return 0; /* the call fails */
    measured = measure(description, kernel, words);
    if (measured < 0)
      return 0;
  }
  return getWorkspaceBytes(description, numTasks, measured);
}

/* The entry points that compute the shapes of outputs. `values` may be NULL;
 * `words` and `known` have space for all words of a call. */
int32_t getOutputSizes(const struct Description *description, int64_t *words,
                       int64_t *known, const int64_t *inputs,
                       const void *const *values, int64_t *outputs,
                       char *message, size_t size) {
  struct Call call = {description, words,  message, size,
                      0,           kDLCPU, NULL,    known};
  if (message && size > 0)
    *message = 0;
  return computeOutputSizes(&call, inputs, values, outputs);
}

/* Returns the error of the first assertion that failed, if any. */
static int32_t checkAssertions(struct Call *call) {
  const struct Description *description = call->description;
  if (description->numAssertions == 0)
    return kEntryOk;
  int64_t failed = *getLastWord(description, call->words, kStatusWord);
  if (failed < 0 || failed >= description->numAssertions)
    return kEntryOk;
  const char *text = description->names + description->assertions;
  for (; failed > 0; --failed) {
    while (*text)
      ++text;
    ++text;
  }
  return fail(call, kEntryIndex, text, NULL);
}

/* Checks the memory and the indices of a call and runs the kernel. */
static int32_t run(struct Call *call, const struct Kernel *kernel) {
  const struct Description *description = call->description;
  int64_t outputBytes;
  int32_t code = checkMemory(call, &outputBytes);
  if (!code)
    code = checkIndices(call);
  if (code || outputBytes == 0)
    return code;
  int64_t numTasks = getNumTasks(description, kernel, call->words);
  if (description->hasWorkspace) {
    int64_t measured = measure(description, kernel, call->words);
    if (measured < 0)
      return fail(call, kEntrySize, "sizes multiply beyond 63 bits", NULL);
    code = bindWorkspace(
        call, getWorkspaceBytes(description, numTasks, measured), measured);
    if (code)
      return code;
  }
  struct Work work = {description, kernel, call->words, numTasks};
  if (description->runShared)
    description->runShared(&work,
                           getLastWord(description, call->words, kSharedWord));
  else
    runPhases(&work);
  return checkAssertions(call);
}

/* The plain entry point. The caller has set the words of arguments and sizes,
 * -1 for sizes that follow from others, and the workspace. */
int32_t launch(const struct Description *description, int64_t *words) {
  const struct Kernel *kernel = findKernel(description);
  if (!kernel)
    return kEntryCpu;
  if (description->needsWeights && !hasWeights())
    return kEntryWeights;
  for (int64_t i = 0; i < description->numSizes; ++i)
    if (description->sizes[i] >= -1 && words[getSizeWord(description, i)] < 0)
      return kEntrySize;
  struct Call call = {description, words, NULL, 0, 0, kDLCPU, NULL, NULL};
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
  if (call->description->needsWeights && !hasWeights())
    return fail(call, kEntryWeights,
                "the weights are not open: the library's function "
                "'<prefix>_weights_open' opens them",
                NULL);
  int32_t code = bindArguments(call, arguments);
  return code ? code : run(call, kernel);
}

/* The checked entry point. `arguments` are DLTensor pointers and scalars;
 * `words` has space for all words of the call. */
int32_t launchTensors(const struct Description *description,
                      const int64_t *arguments, int64_t *words, char *message,
                      size_t size) {
  struct Call call = {description, words, message, size, 0, kDLCPU, NULL, NULL};
  if (message && size > 0)
    *message = 0;
  return runTensors(&call, arguments);
}

/* The TVM FFI entry point. `arguments` and `words` have space for those of
 * launchTensors. `onCuda` runs calls with tensors on a CUDA device; it is NULL
 * if there is no code for one. */
int32_t launchFfi(const struct Description *description, const struct Any *args,
                  int32_t count, struct Any *result, int64_t *arguments,
                  int64_t *words, FfiFunction onCuda) {
  if (onCuda && isOnCuda(args, count))
    return onCuda(NULL, args, count, result);
  char message[256] = "";
  struct Call call = {description, words,  message, sizeof(message),
                      0,           kDLCPU, NULL,    NULL};
  int64_t workspaceBytes;
  int32_t code =
      unpackArguments(&call, args, count, arguments, &workspaceBytes);
  if (!code)
    code = runTensors(&call, arguments);
  if (!code && result)
    *result = (struct Any){.type = kFfiNone};
  return raise(&call, code);
}

/* Maps the weights of the library. `path` is that of setPath(); NULL also
 * stands for the file that is open. */
int32_t openWeights(const struct WeightsFile *file, const char *path,
                    char *message, size_t size) {
  struct Call call = {NULL, NULL, message, size, 0, kDLCPU, NULL, NULL};
  while (__atomic_exchange_n(&weights.lock, 1, __ATOMIC_ACQUIRE))
    sched_yield();
  int32_t code = openLocked(&call, file, path);
  __atomic_store_n(&weights.lock, 0, __ATOMIC_RELEASE);
  if (message && size > 0)
    message[call.used] = 0;
  return code;
}

/* Runs when a library that has weights in a file is unloaded. */
void closeWeights(void) {
  if (weights.isOpen)
    unmapWeights(weights.file, weights.data);
}
