//===- Compile.h - compiles kernels within a process --------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The C interface of the compiler, which libPosenc.so exports. Usable from C11
/// and C++. The Python package calls it.
///
/// No function exits, aborts or throws, and each may be called from several
/// threads at once, which then compile at the same time.
///
//===----------------------------------------------------------------------===//

#ifndef POSENC_C_COMPILE_H
#define POSENC_C_COMPILE_H

#include <stddef.h>

#define POSENC_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// Kernels that are compiled in memory: the symbols of a kernel library with
/// the prefix `posenc`, as docs/abi.md describes them.
typedef struct posenc_kernels posenc_kernels;

/// Compiles a model's config.json, an ONNX model or MLIR (text or bytecode) for
/// this machine.
///
/// `name` stands for the path of the input: it is printed in messages, and a
/// name with the suffix `.json` says that `input`, of `size` bytes, is a
/// config, and `.onnx` that it is an ONNX model; external data is read if the
/// name is that of a file. `options` are flags of posenc-compile, each in one
/// string with its value:
/// `--dtype=`, `--kernels=`, `--pairing=`, `--k-cache=`, `--cache-dtype=`,
/// `--cache-scales=`, `--decode-tokens=`, `--rope-length=`, `--precision=`,
/// `--qk-norm`, `--index-type=`, `--lse`, `--rotation=`, `--causal=`,
/// `--stack-limit=`, `--opt-level=`, `--target=` (one CPU, any number of
/// `cuda:sm_NN`), `--tuning=`, `--schedule=`, `--threads=none`,
/// `--raise=`, `--assert=`, `--report=` and `--no-warnings`. With targets for
/// CUDA alone there is no code for CPUs. Code is cached in the same folder as
/// that of posenc-compile.
///
/// On success the result is to be given to posenc_kernels_free(). After an
/// error it is NULL. `*messages` becomes the text of all errors and warnings,
/// one on each line, to be given to posenc_messages_free(). `messages` may be
/// NULL.
///
/// If the compiler crashes, the call returns an error, as do later calls, since
/// the crash may have left the compiler's memory in any state.
POSENC_C_API posenc_kernels *
posenc_compile(const char *name, const char *input, size_t size,
               const char *const *options, size_t num_options, char **messages);

/// Returns the functions that posenc_compile() would compile with the same
/// arguments, as JSON: `{"targets": ["x86-64:znver4"], "functions": [{"name":
/// "rope", "doc": "Rotates …"}]}`, to be given to posenc_messages_free(). This
/// takes milliseconds, and reports errors and warnings about the input and the
/// options in the same way. After an error it returns NULL.
POSENC_C_API char *posenc_list(const char *name, const char *input, size_t size,
                               const char *const *options, size_t num_options,
                               char **messages);

/// The metadata of the kernels: the JSON text of `posenc_metadata()`.
POSENC_C_API const char *posenc_kernels_metadata(const posenc_kernels *kernels);

/// The address of an exported symbol of the kernels, or NULL.
POSENC_C_API void *posenc_kernels_symbol(posenc_kernels *kernels,
                                         const char *symbol);

/// Frees the kernels, none of which may be running. Does nothing for NULL.
POSENC_C_API void posenc_kernels_free(posenc_kernels *kernels);

/// Frees the messages of a compilation, or the result of posenc_list(). Does
/// nothing for NULL.
POSENC_C_API void posenc_messages_free(char *messages);

/// Sets the folders of Python packages in which the compiler looks for the
/// ptxas of nvidia-cuda-nvcc, after CUDA_HOME, CUDA_PATH and PATH, for the
/// whole process. Without this call they are those of VIRTUAL_ENV, or of the
/// python3 on PATH, which is started to ask for them. Empty strings are
/// skipped.
POSENC_C_API void posenc_set_package_folders(const char *const *folders,
                                             size_t num_folders);

/// The version of the compiler, "0.1.0".
POSENC_C_API const char *posenc_compiler_version(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_C_COMPILE_H
