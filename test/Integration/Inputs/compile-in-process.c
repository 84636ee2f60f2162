//===- compile-in-process.c - the C interface of the compiler -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-c/Compile.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *readFile(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *text = malloc(1 << 16);
  if (!file || !text)
    abort();
  *size = fread(text, 1, 1 << 16, file);
  fclose(file);
  return text;
}

/* Expects an error and prints it. */
static void fail(const char *name, const char *text, const char *option1,
                 const char *option2) {
  const char *options[] = {option1, option2};
  char *messages = NULL;
  posenc_kernels *kernels =
      posenc_compile(name, text, text ? strlen(text) : 1, options,
                     (option1 != NULL) + (option2 != NULL), &messages);
  if (kernels || !messages)
    abort();
  fputs(messages, stdout);
  posenc_messages_free(messages);
}

/* Prints what posenc_list() returns, which may be NULL, and its messages. */
static void list(const char *name, const char *text, const char *option) {
  char *messages = NULL;
  char *result = posenc_list(name, text, text ? strlen(text) : 1, &option,
                             option != NULL, &messages);
  if (result)
    printf("%s\n", result);
  if (!messages || (!result && !*messages))
    abort();
  fputs(messages, stdout);
  posenc_messages_free(messages);
  posenc_messages_free(result);
}

typedef int32_t Rope(const float *q, const float *k, const int64_t *positions,
                     float *q_out, float *k_out, int64_t batch, int64_t tokens);

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  size_t size;
  char *text = readFile(argv[1], &size);
  const char *options[] = {"--dtype=f32", "--kernels=rope"};
  char *messages;
  posenc_kernels *kernels =
      posenc_compile("config.json", text, size, options, 2, &messages);
  if (!kernels || *messages) {
    fputs(messages, stdout);
    return 1;
  }
  posenc_messages_free(messages);
  if (!strstr(posenc_kernels_metadata(kernels), "\"prefix\":\"posenc\"") ||
      posenc_kernels_symbol(kernels, "posenc_attention") ||
      !posenc_kernels_symbol(kernels, "__tvm_ffi_posenc_rope"))
    return 1;
  void *address = posenc_kernels_symbol(kernels, "posenc_rope");
  Rope *rope;
  memcpy(&rope, &address, sizeof(rope));
  int64_t position = 3;
  float *q = calloc(32 * 128, sizeof(float)),
        *k = calloc(8 * 128, sizeof(float));
  q[0] = 1;
  printf("rope: %d, ", rope(q, k, &position, q, k, 1, 1));
  printf("cos 3 is %.7f\n", q[0]);
  fflush(stdout);

  /* The kernels work when another compilation has failed. */
  text[size < (1 << 16) ? size : size - 1] = '\0';
  fail("config.json", "", NULL, NULL);
  fail("x.json", "{\"model_type\": \"bert\"}", NULL, NULL);
  fail("module.mlir", "posenc.rope", NULL, NULL);
  fail("config.json", text, "--kernels=rape", NULL);
  fail("config.json", text, "--fast", NULL);
  fail("config.json", text, "--help", NULL);
  fail("config.json", text, "rope", NULL);
  fail("config.json", text, "--threads=two", NULL);
  fail("config.json", text, "--target=host", "--target=x86-64-v3");
  fail("config.json", text, "--target=vulkan", NULL);
  fail("config.json", NULL, NULL, NULL);
  fail(NULL, text, NULL, NULL);
  list("config.json", text, "--target=x86-64-v3");
  list("module.mlir",
       "func.func @f() { return }\nfunc.func private @g() { return }", NULL);
  list("config.json", text, "--kernels=rape");
  list("config.json", NULL, NULL);
  posenc_messages_free(NULL);
  if (posenc_compile("config.json", "", 0, NULL, 0, NULL))
    return 1;
  memset(q, 0, sizeof(float));
  if (rope(q, k, &position, q, k, 1, 1))
    return 1;
  posenc_kernels_free(kernels);
  posenc_kernels_free(NULL);
  printf("ok\n");
  free(q);
  free(k);
  free(text);
  return 0;
}
