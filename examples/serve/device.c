/*===- device.c - calls of the kernels on a CPU or a GPU --------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#include "device.h"

#include "model.h"

#include "posenc/runtime/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The GPU's index, or -1 for the CPU. */
static int32_t gpu = -1;

/* The memory of the GPU for an array of the host. */
struct Mirror {
  const void *host;
  void *device;
  size_t bytes;
};

enum { kMaxMirrors = 32 };
static struct Mirror mirrors[kMaxMirrors];
static int numMirrors;

/* The workspace of all calls: the default stream runs one after the other. */
static void *workspace;
static int64_t workspaceBytes;

static void failWith(const char *what, const char *text) {
  fprintf(stderr, "posenc-serve-example: %s: %s\n", what, text);
  exit(1);
}

/* Ends the program after an error of a kernel. */
static void checkCall(const char *function, int32_t code, const char *text) {
  char number[32];
  snprintf(number, sizeof number, "error %d", code);
  if (code)
    failWith(function, *text ? text : number);
}

/* Ends the program after an error of the runtime. */
static void checkRuntime(const char *what, posenc_status status) {
  if (status)
    failWith(what, posenc_last_error());
}

int openDevice(const char *name) {
  if (!strcmp(name, "cpu"))
    return 1;
  char *end = "";
  long index = 0;
  if (!strncmp(name, "cuda:", 5) && name[5] >= '0' && name[5] <= '9')
    index = strtol(name + 5, &end, 10);
  else if (strcmp(name, "cuda"))
    return 0;
  if (*end || index > INT32_MAX)
    return 0;
  gpu = (int32_t)index;
  posenc_cuda_facts facts;
  checkRuntime(name, posenc_cuda_query_device(gpu, &facts));
  return 1;
}

void closeDevice(void) {
  for (int i = 0; i < numMirrors; ++i)
    checkRuntime("memory", posenc_cuda_free(gpu, mirrors[i].device));
  checkRuntime("workspace", posenc_cuda_free(gpu, workspace));
  numMirrors = 0;
  workspace = NULL;
  workspaceBytes = 0;
}

/* Returns the mirror of an array. A new one has the content of the array. */
static struct Mirror *findMirror(const void *host, size_t bytes) {
  for (int i = 0; i < numMirrors; ++i)
    if (mirrors[i].host == host && mirrors[i].bytes >= bytes)
      return &mirrors[i];
  if (numMirrors == kMaxMirrors)
    failWith("memory", "too many arrays");
  struct Mirror *mirror = &mirrors[numMirrors++];
  mirror->host = host;
  mirror->bytes = bytes;
  checkRuntime("memory", posenc_cuda_allocate(gpu, bytes, &mirror->device));
  checkRuntime("memory",
               posenc_cuda_copy_to_device(gpu, mirror->device, host, bytes));
  return mirror;
}

/* A tensor of a call. */
struct Argument {
  DLTensor tensor;
  int64_t shape[4];
  size_t bytes;
};

enum Copy { kCopied, kNotCopied };
enum Type { kF32, kI64, kI32 };

/* Describes an array that is in the memory of the GPU, after copying it there
 * if it is an input that may have changed. */
static const DLTensor *pass(struct Argument *argument, const void *host,
                            enum Type type, enum Copy copy, int32_t rank,
                            const int64_t *shape) {
  DLTensor *tensor = &argument->tensor;
  memset(argument, 0, sizeof *argument);
  argument->bytes = type == kI64 ? 8 : 4;
  for (int32_t i = 0; i < rank; ++i) {
    argument->shape[i] = shape[i];
    argument->bytes *= (size_t)shape[i];
  }
  struct Mirror *mirror = findMirror(host, argument->bytes);
  if (copy == kCopied)
    checkRuntime("an input", posenc_cuda_copy_to_device(gpu, mirror->device,
                                                        host, argument->bytes));
  tensor->data = mirror->device;
  tensor->device.device_type = 2; /* kDLCUDA */
  tensor->device.device_id = gpu;
  tensor->ndim = rank;
  tensor->dtype.code = type == kF32 ? 2 : 0; /* kDLFloat, kDLInt */
  tensor->dtype.bits = type == kI64 ? 64 : 32;
  tensor->dtype.lanes = 1;
  tensor->shape = argument->shape;
  return tensor;
}

#define SHAPE(...)                                                             \
  (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),         \
      (const int64_t[]) {                                                      \
    __VA_ARGS__                                                                \
  }

/* Waits for a call and copies its output to the host. */
static void fetch(const char *function, const struct Argument *output,
                  void *host) {
  checkRuntime(function, posenc_cuda_copy_to_host(
                             gpu, host, output->tensor.data, output->bytes));
}

/* Makes the workspace large enough for a call. */
static void reserve(const char *function, int64_t bytes) {
  if (bytes < 0)
    failWith(function, "these sizes need a workspace that is too large");
  if (bytes <= workspaceBytes)
    return;
  checkRuntime(function, posenc_cuda_free(gpu, workspace));
  checkRuntime(function, posenc_cuda_allocate(gpu, (size_t)bytes, &workspace));
  workspaceBytes = bytes;
}

void attendWhole(const float *q, const float *k, const float *v,
                 const int64_t *positions, const int64_t *cuSeqlens, float *o,
                 int64_t tokens, int64_t sequences) {
  static const char name[] = "model_attention_ragged";
  if (gpu < 0) {
    checkCall(name,
              model_attention_ragged(q, k, v, positions, cuSeqlens, o, tokens,
                                     sequences + 1),
              "");
    return;
  }
  struct Argument a[6];
  char text[256] = "";
  reserve(name, model_attention_ragged_cuda_workspace(tokens, sequences + 1));
  checkCall(name,
            model_attention_ragged_cuda(
                pass(&a[0], q, kF32, kCopied, SHAPE(tokens, kHeads, kDim)),
                pass(&a[1], k, kF32, kCopied, SHAPE(tokens, kKeyHeads, kDim)),
                pass(&a[2], v, kF32, kCopied, SHAPE(tokens, kKeyHeads, kDim)),
                pass(&a[3], positions, kI64, kCopied, SHAPE(tokens)),
                pass(&a[4], cuSeqlens, kI64, kCopied, SHAPE(sequences + 1)),
                pass(&a[5], o, kF32, kNotCopied, SHAPE(tokens, kHeads, kDim)),
                workspace, NULL, text, sizeof text),
            text);
  fetch(name, &a[5], o);
}

/* Describes pages, which are never copied again. */
static const DLTensor *passPages(struct Argument *argument, const float *pages,
                                 const struct Pages *all) {
  return pass(argument, pages, kF32, kNotCopied,
              SHAPE(all->count, kKeyHeads, all->size, kDim));
}

void appendTokens(const float *k, const float *v, const int64_t *positions,
                  const int64_t *slots, int64_t tokens,
                  const struct Pages *pages) {
  static const char name[] = "model_append_paged";
  if (gpu < 0) {
    checkCall(name,
              model_append_paged(k, v, positions, slots, pages->k, pages->v,
                                 pages->k, pages->v, tokens, pages->count,
                                 pages->size),
              "");
    return;
  }
  struct Argument a[6];
  char text[256] = "";
  const DLTensor *kPages = passPages(&a[4], pages->k, pages);
  const DLTensor *vPages = passPages(&a[5], pages->v, pages);
  checkCall(name,
            model_append_paged_cuda(
                pass(&a[0], k, kF32, kCopied, SHAPE(tokens, kKeyHeads, kDim)),
                pass(&a[1], v, kF32, kCopied, SHAPE(tokens, kKeyHeads, kDim)),
                pass(&a[2], positions, kI64, kCopied, SHAPE(tokens)),
                pass(&a[3], slots, kI64, kCopied, SHAPE(tokens)), kPages,
                vPages, kPages, vPages, NULL, text, sizeof text),
            text);
}

void attendPages(const float *q, const int64_t *positions, float *o,
                 int64_t tokens, const struct Pages *pages,
                 const struct Sequences *sequences) {
  static const char name[] = "model_attention_paged";
  int64_t count = sequences->count, maxPages = sequences->maxPages;
  if (gpu < 0) {
    checkCall(name,
              model_attention_paged(q, positions, pages->k, pages->v,
                                    sequences->blockTable, sequences->cuSeqlens,
                                    sequences->lengths, o, tokens, pages->count,
                                    pages->size, count, maxPages, count + 1),
              "");
    return;
  }
  struct Argument a[8];
  char text[256] = "";
  reserve(name, model_attention_paged_cuda_workspace(tokens, pages->count,
                                                     pages->size, count,
                                                     maxPages, count + 1));
  checkCall(
      name,
      model_attention_paged_cuda(
          pass(&a[0], q, kF32, kCopied, SHAPE(tokens, kHeads, kDim)),
          pass(&a[1], positions, kI64, kCopied, SHAPE(tokens)),
          passPages(&a[2], pages->k, pages), passPages(&a[3], pages->v, pages),
          pass(&a[4], sequences->blockTable, kI32, kCopied,
               SHAPE(count, maxPages)),
          pass(&a[5], sequences->cuSeqlens, kI64, kCopied, SHAPE(count + 1)),
          pass(&a[6], sequences->lengths, kI64, kCopied, SHAPE(count)),
          pass(&a[7], o, kF32, kNotCopied, SHAPE(tokens, kHeads, kDim)),
          workspace, NULL, text, sizeof text),
      text);
  fetch(name, &a[7], o);
}
