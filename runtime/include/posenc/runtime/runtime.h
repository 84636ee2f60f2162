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
/// No function aborts, exits or throws. Functions that return posenc_status set
/// the text of posenc_last_error() when they fail. Every function may be called
/// from several threads at once, except that a library must not be closed while
/// another thread uses it or one of its functions.
///
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_RUNTIME_H
#define POSENC_RUNTIME_RUNTIME_H

#include "posenc/runtime/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An open kernel library. It owns all objects that its queries return.
typedef struct posenc_library posenc_library;
/// A function of a library and its signature; valid until the library is
/// closed.
typedef struct posenc_function posenc_function;
/// An input or output of a function; valid until the library is closed.
typedef struct posenc_argument posenc_argument;

/// Calls body(arg, i) for every i in [0, n), in any order and on any threads,
/// and returns when all calls have returned. `ctx` is the pointer that was
/// passed to posenc_library_set_parallel_for().
typedef void (*posenc_parallel_for)(void *ctx,
                                    void (*body)(void *arg, int64_t i),
                                    void *arg, int64_t n);

/// Returns the address of `symbol`, or NULL if there is no such symbol.
typedef void *(*posenc_symbol_lookup)(void *ctx, const char *symbol);

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

/// Opens the kernel library at `path`, relative or absolute. The file is
/// checked before the system's loader sees it: a file that is damaged, cut off,
/// for another machine or not a Posenc kernel library is refused without any
/// of its code being run. (Code that was written to do harm is not recognised.)
/// If the library has weights in a file, that is mapped: it must be beside the
/// library, be the one that was compiled with it, and not change while the
/// library is open.
/// On success `*out` is the caller's, to be given to posenc_library_close(); on
/// failure it is NULL. Errors: INVALID_ARGUMENT, NOT_FOUND, IO_ERROR,
/// BAD_LIBRARY, OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_library_open(const char *path,
                                                     posenc_library **out);

/// Opens the library as posenc_library_open() does, with weights in another
/// place than beside it: `weights` is the path of their file, or that of its
/// folder with a final slash; NULL means beside the library. It is an error if
/// the process has opened the library's weights from another path. A library
/// without weights in a file ignores it.
POSENC_RUNTIME_API posenc_status posenc_library_open_with_weights(
    const char *path, const char *weights, posenc_library **out);

/// Opens a kernel library whose code is in memory already (a JIT). `metadata`
/// is the JSON text that X_metadata() would return; it is copied. `lookup` is
/// called with `ctx` for each function's symbols, some of which are optional,
/// before this returns; neither is kept. The code must outlive the library.
/// Errors: INVALID_ARGUMENT, BAD_LIBRARY, OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status
posenc_library_from_symbols(const char *metadata, posenc_symbol_lookup lookup,
                            void *ctx, posenc_library **out);

/// Closes the library and unloads its code. Does nothing for NULL.
POSENC_RUNTIME_API void posenc_library_close(posenc_library *library);

/// The metadata of the library as JSON, owned by the library. NULL for a NULL
/// library.
POSENC_RUNTIME_API const char *
posenc_library_metadata(const posenc_library *library);

/// The prefix X of the library's symbols. NULL for a NULL library.
POSENC_RUNTIME_API const char *
posenc_library_prefix(const posenc_library *library);

/// The number of targets that the library has code for.
POSENC_RUNTIME_API size_t
posenc_library_num_targets(const posenc_library *library);

/// The name of the target at `index` ("x86-64-v3"); NULL beyond the last.
POSENC_RUNTIME_API const char *
posenc_library_target(const posenc_library *library, size_t index);

/// The number of functions, in the order of the metadata.
POSENC_RUNTIME_API size_t
posenc_library_num_functions(const posenc_library *library);

/// The function at `index`; NULL beyond the last.
POSENC_RUNTIME_API const posenc_function *
posenc_library_function(const posenc_library *library, size_t index);

/// The function called `name` (without prefix). NULL if there is none;
/// posenc_last_error() then lists the functions of the library.
POSENC_RUNTIME_API const posenc_function *
posenc_library_find(const posenc_library *library, const char *name);

/// Makes the library run its parallel loops through `parallel_for` with `ctx`.
/// Both must stay valid until the next such call or until the library is
/// closed. A NULL `parallel_for` restores the library's default. Must not be
/// called while a function of the library runs. Errors: INVALID_ARGUMENT,
/// NOT_FOUND (the library has no parallel loops).
POSENC_RUNTIME_API posenc_status posenc_library_set_parallel_for(
    posenc_library *library, posenc_parallel_for parallel_for, void *ctx);

//===----------------------------------------------------------------------===//
// Signatures: queries return 0 or NULL for NULL and for an index out of range
//===----------------------------------------------------------------------===//

/// The name of the function, without prefix.
POSENC_RUNTIME_API const char *
posenc_function_name(const posenc_function *function);

/// The symbol of the plain C function, "" for a function with GPU code only.
POSENC_RUNTIME_API const char *
posenc_function_symbol(const posenc_function *function);

/// The address of the plain C function, for callers who know its prototype and
/// do not need the checks of posenc_call(). NULL for a function with GPU code
/// only.
POSENC_RUNTIME_API void *
posenc_function_address(const posenc_function *function);

/// The inputs and outputs, in the order in which posenc_call() takes them.
POSENC_RUNTIME_API size_t
posenc_function_num_inputs(const posenc_function *function);
POSENC_RUNTIME_API size_t
posenc_function_num_outputs(const posenc_function *function);
POSENC_RUNTIME_API const posenc_argument *
posenc_function_input(const posenc_function *function, size_t index);
POSENC_RUNTIME_API const posenc_argument *
posenc_function_output(const posenc_function *function, size_t index);

/// The names of the distinct dynamic sizes, in the order in which the plain C
/// function takes them.
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

/// 1 for a tensor of which the function reads the shape only, 0 otherwise. The
/// data of such a tensor may be NULL, and may overlap an output.
POSENC_RUNTIME_API int32_t
posenc_argument_is_shape_only(const posenc_argument *argument);

/// The size of dimension `dim` in elements; POSENC_DYNAMIC if it is known only
/// at the call.
POSENC_RUNTIME_API int64_t posenc_argument_size(const posenc_argument *argument,
                                                int32_t dim);

/// The dynamic size, scalar input or expression of these and of elements that
/// determines dimension `dim` ("n0", "2 * n0", "max(n0, t[0])"); NULL for a
/// static size.
POSENC_RUNTIME_API const char *
posenc_argument_size_name(const posenc_argument *argument, int32_t dim);

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Computes the shape of output `index` for the given inputs. Writes as many
/// sizes, in elements, as the rank of the output to `shape`. Reads the types,
/// shapes and scalars of the inputs, and the element of each input that is in
/// the name of a size, such as "t[0]"; other data may be NULL. Errors: those of
/// posenc_call(), and INVALID_ARGUMENT if the inputs do not determine a size.
POSENC_RUNTIME_API posenc_status
posenc_output_shape(const posenc_function *function, const posenc_value *inputs,
                    size_t num_inputs, size_t index, int64_t *shape);

/// Calls the function on the CPU. Before anything is written, it checks
///  - the numbers of inputs and outputs, kinds, element types and ranks,
///  - static sizes, and that a dynamic size is the same wherever it occurs,
///  - that sizes are not negative and that their products fit in int64_t,
///  - that data is aligned to the element, and not NULL unless it is empty,
///  - that 32-bit scalars are in range,
///  - that an output overlaps no other argument. Exception: an output may be in
///    place of one input of the same data, shape and type.
/// The data of shape-only inputs is not checked. The values of tensors are not
/// checked either: a kernel that uses values as indices (sequence lengths,
/// block tables) trusts them. Allocates memory only if the kernel needs a
/// workspace. Errors: INVALID_ARGUMENT, SHAPE_MISMATCH, DTYPE_MISMATCH,
/// KERNEL_FAILED (the outputs may be partly written), OUT_OF_MEMORY,
/// UNSUPPORTED (this CPU lacks a feature that the library requires, the
/// function has GPU code only, or it has more than POSENC_MAX_ARGUMENTS
/// arguments).
POSENC_RUNTIME_API posenc_status posenc_call(const posenc_function *function,
                                             const posenc_value *inputs,
                                             size_t num_inputs,
                                             const posenc_value *outputs,
                                             size_t num_outputs);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_RUNTIME_H
