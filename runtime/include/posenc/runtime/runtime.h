//===- runtime.h - Opens kernel libraries and calls them ----------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The C interface of the Posenc runtime. Usable from C11 and C++.
///
/// No function aborts, exits or lets a C++ exception out. Every function is
/// safe to call from several threads; a library must not be closed while
/// another thread still uses it or a function of it.
///
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_RUNTIME_H
#define POSENC_RUNTIME_RUNTIME_H

#include "posenc/runtime/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An open kernel library; owns everything that is reached through it.
typedef struct posenc_library posenc_library;
/// A function of a library and its signature; lives as long as the library.
typedef struct posenc_function posenc_function;
/// An input or output of a function; lives as long as the library.
typedef struct posenc_argument posenc_argument;

/// Runs body(arg, i) for every i in [0, n), in any order and on any threads,
/// and returns when all are done.
typedef void (*posenc_parallel_for)(void *ctx,
                                    void (*body)(void *arg, int64_t i),
                                    void *arg, int64_t n);

/// The address of `symbol`, or NULL where there is none.
typedef void *(*posenc_symbol_lookup)(void *ctx, const char *symbol);

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

/// Opens the kernel library at `path`, relative or absolute. The file is
/// checked before the system's loader sees it: a file that was cut off, that is
/// for another machine or that is not a Posenc kernel library is refused, and
/// none of its code runs. Damage within the file (a flipped bit) is not
/// detected, nor is code that was written to do harm. On success `*out` belongs
/// to the caller, who passes it to posenc_library_close(); on failure it is
/// NULL. Errors: INVALID_ARGUMENT, NOT_FOUND, IO_ERROR, BAD_LIBRARY,
/// OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_library_open(const char *path,
                                                     posenc_library **out);

/// The same for code that is in memory already (a JIT): `metadata` is the JSON
/// text that X_metadata() would return (it is copied), and `lookup` is asked
/// for each function's symbol, and for optional ones, before this returns; it
/// is not kept. The code must outlive the library.
POSENC_RUNTIME_API posenc_status
posenc_library_from_symbols(const char *metadata, posenc_symbol_lookup lookup,
                            void *ctx, posenc_library **out);

/// Releases the library and unloads its code. NULL is allowed.
POSENC_RUNTIME_API void posenc_library_close(posenc_library *library);

/// The metadata as the library gave it: JSON, owned by the library. NULL for
/// a NULL library.
POSENC_RUNTIME_API const char *
posenc_library_metadata(const posenc_library *library);

/// The prefix of the library's symbols. NULL for a NULL library.
POSENC_RUNTIME_API const char *
posenc_library_prefix(const posenc_library *library);

/// The number of targets the library has code for, and the name of the one at
/// `index` ("x86-64-v3"), NULL beyond the last.
POSENC_RUNTIME_API size_t
posenc_library_num_targets(const posenc_library *library);
POSENC_RUNTIME_API const char *
posenc_library_target(const posenc_library *library, size_t index);

/// The number of functions, in the order of the metadata.
POSENC_RUNTIME_API size_t
posenc_library_num_functions(const posenc_library *library);

/// The function at `index`; NULL beyond the last.
POSENC_RUNTIME_API const posenc_function *
posenc_library_function(const posenc_library *library, size_t index);

/// The function called `name` (without prefix). NULL where there is none; the
/// error text then lists those that exist.
POSENC_RUNTIME_API const posenc_function *
posenc_library_find(const posenc_library *library, const char *name);

/// Makes the library run its parallel loops through `parallel_for` with `ctx`,
/// both of which must stay valid until the next such call or the close; NULL
/// asks for the library's own default again. Not to be called while a function
/// of the library runs. NOT_FOUND for a library without parallel loops.
POSENC_RUNTIME_API posenc_status posenc_library_set_parallel_for(
    posenc_library *library, posenc_parallel_for parallel_for, void *ctx);

//===----------------------------------------------------------------------===//
// Signatures: a NULL argument or an index out of range gives 0 or NULL
//===----------------------------------------------------------------------===//

/// The name of the function, and the symbol it is exported as.
POSENC_RUNTIME_API const char *
posenc_function_name(const posenc_function *function);
POSENC_RUNTIME_API const char *
posenc_function_symbol(const posenc_function *function);

/// The address of the plain C function, for a caller who knows its prototype
/// and does without the checks of posenc_call().
POSENC_RUNTIME_API void *
posenc_function_address(const posenc_function *function);

/// Inputs and outputs, in the order in which posenc_call() takes them.
POSENC_RUNTIME_API size_t
posenc_function_num_inputs(const posenc_function *function);
POSENC_RUNTIME_API size_t
posenc_function_num_outputs(const posenc_function *function);
POSENC_RUNTIME_API const posenc_argument *
posenc_function_input(const posenc_function *function, size_t index);
POSENC_RUNTIME_API const posenc_argument *
posenc_function_output(const posenc_function *function, size_t index);

/// The distinct dynamic sizes, in the order in which the C function takes them.
POSENC_RUNTIME_API size_t
posenc_function_num_sizes(const posenc_function *function);
POSENC_RUNTIME_API const char *
posenc_function_size_name(const posenc_function *function, size_t index);

/// The name, kind, element type and rank (0 for a scalar) of an argument.
POSENC_RUNTIME_API const char *
posenc_argument_name(const posenc_argument *argument);
POSENC_RUNTIME_API posenc_kind
posenc_argument_kind(const posenc_argument *argument);
POSENC_RUNTIME_API posenc_dtype
posenc_argument_dtype(const posenc_argument *argument);
POSENC_RUNTIME_API int32_t
posenc_argument_rank(const posenc_argument *argument);

/// 1 for a tensor whose elements the function never reads: its data may be NULL
/// or any memory, also that of an output. Else 0.
POSENC_RUNTIME_API int32_t
posenc_argument_is_shape_only(const posenc_argument *argument);

/// The size of dimension `dim` in elements, POSENC_DYNAMIC where it is known
/// only at the call; then posenc_argument_size_name() is the name of the
/// dynamic size or scalar input that decides it, otherwise NULL.
POSENC_RUNTIME_API int64_t posenc_argument_size(const posenc_argument *argument,
                                                int32_t dim);
POSENC_RUNTIME_API const char *
posenc_argument_size_name(const posenc_argument *argument, int32_t dim);

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Writes the shape of output `index`, as many sizes as its rank, for the
/// given inputs to `shape`. Of the inputs only types, shapes and scalars count;
/// their data may be NULL. Errors: as posenc_call(); INVALID_ARGUMENT for an
/// output whose size the inputs do not decide.
POSENC_RUNTIME_API posenc_status
posenc_output_shape(const posenc_function *function, const posenc_value *inputs,
                    size_t num_inputs, size_t index, int64_t *shape);

/// Calls the function. Checked first: counts, kinds, element types, ranks,
/// static sizes, that a dynamic size is the same wherever it occurs, sizes
/// (not negative, products within int64_t), data (not NULL unless empty,
/// aligned to the element) and the range of 32-bit scalars. An output may be
/// exactly one of the inputs (same data, shape and type: in place); any other
/// overlap of an output with an input or output is refused; inputs of which
/// only the shape counts have no data to check. The *values* of tensors are not
/// looked at: a kernel that uses some as an index (lengths, block tables) takes
/// them as they are. Nothing is written unless all checks pass. Memory is
/// allocated only for a kernel that asks for a workspace. Errors:
/// INVALID_ARGUMENT, SHAPE_MISMATCH, DTYPE_MISMATCH, KERNEL_FAILED (outputs may
/// be half written), OUT_OF_MEMORY, UNSUPPORTED (this CPU lacks what the
/// library needs; more than POSENC_MAX_ARGUMENTS arguments).
POSENC_RUNTIME_API posenc_status posenc_call(const posenc_function *function,
                                             const posenc_value *inputs,
                                             size_t num_inputs,
                                             const posenc_value *outputs,
                                             size_t num_outputs);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_RUNTIME_H
