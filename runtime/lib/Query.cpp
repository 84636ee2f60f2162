//===- Query.cpp - Queries of libraries and signatures --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "KernelLibrary.h"

using namespace posenc::runtime;

/// The element at `index`, or null.
template <typename T>
static const T *at(const std::vector<T> &list, size_t index) {
  return index < list.size() ? &list[index] : nullptr;
}

static const char *textAt(const std::vector<std::string> &list, size_t index) {
  const std::string *text = at(list, index);
  return text ? text->c_str() : nullptr;
}

const char *posenc_library_metadata(const posenc_library *library) {
  return library ? library->text.c_str() : nullptr;
}

const char *posenc_library_prefix(const posenc_library *library) {
  return library ? library->metadata.prefix.c_str() : nullptr;
}

size_t posenc_library_num_targets(const posenc_library *library) {
  return library ? library->metadata.targets.size() : 0;
}

const char *posenc_library_target(const posenc_library *library, size_t index) {
  return library ? textAt(library->metadata.targets, index) : nullptr;
}

size_t posenc_library_num_functions(const posenc_library *library) {
  return library ? library->metadata.functions.size() : 0;
}

const posenc_function *posenc_library_function(const posenc_library *library,
                                               size_t index) {
  return library ? at(library->metadata.functions, index) : nullptr;
}

const posenc_function *posenc_library_find(const posenc_library *library,
                                           const char *name) {
  if (!library || !name) {
    fail(POSENC_INVALID_ARGUMENT, "posenc_library_find: NULL argument");
    return nullptr;
  }
  for (const posenc_function &function : library->metadata.functions)
    if (function.name == name)
      return &function;
  guarded([&] {
    std::string list;
    for (const posenc_function &function : library->metadata.functions)
      list += (list.empty() ? "" : ", ") + function.name;
    return fail(POSENC_NOT_FOUND, "no function '%.256s'; the library has %s",
                name, list.empty() ? "none" : list.c_str());
  });
  return nullptr;
}

const char *posenc_function_name(const posenc_function *function) {
  return function ? function->name.c_str() : nullptr;
}

const char *posenc_function_symbol(const posenc_function *function) {
  return function ? function->symbol.c_str() : nullptr;
}

void *posenc_function_address(const posenc_function *function) {
  return function ? function->address : nullptr;
}

size_t posenc_function_num_inputs(const posenc_function *function) {
  return function ? function->inputs.size() : 0;
}

size_t posenc_function_num_outputs(const posenc_function *function) {
  return function ? function->outputs.size() : 0;
}

const posenc_argument *posenc_function_input(const posenc_function *function,
                                             size_t index) {
  return function ? at(function->inputs, index) : nullptr;
}

const posenc_argument *posenc_function_output(const posenc_function *function,
                                              size_t index) {
  return function ? at(function->outputs, index) : nullptr;
}

size_t posenc_function_num_sizes(const posenc_function *function) {
  return function ? function->sizes.size() : 0;
}

const char *posenc_function_size_name(const posenc_function *function,
                                      size_t index) {
  return function ? textAt(function->sizes, index) : nullptr;
}

const char *posenc_argument_name(const posenc_argument *argument) {
  return argument ? argument->name.c_str() : nullptr;
}

posenc_kind posenc_argument_kind(const posenc_argument *argument) {
  return argument ? argument->kind : POSENC_TENSOR;
}

posenc_dtype posenc_argument_dtype(const posenc_argument *argument) {
  return argument ? argument->dtype : POSENC_DTYPE_INVALID;
}

int32_t posenc_argument_is_shape_only(const posenc_argument *argument) {
  return argument ? argument->isShapeOnly : 0;
}

int32_t posenc_argument_rank(const posenc_argument *argument) {
  return argument ? static_cast<int32_t>(argument->shape.size()) : 0;
}

/// A negative `dim` becomes an index that no list has.
static const Dim *dimOf(const posenc_argument *argument, int32_t dim) {
  return argument ? at(argument->shape, static_cast<size_t>(dim)) : nullptr;
}

int64_t posenc_argument_size(const posenc_argument *argument, int32_t dim) {
  const Dim *found = dimOf(argument, dim);
  if (!found)
    return 0;
  return found->kind == Dim::Kind::Static ? found->value : POSENC_DYNAMIC;
}

const char *posenc_argument_size_name(const posenc_argument *argument,
                                      int32_t dim) {
  const Dim *found = dimOf(argument, dim);
  return found && found->kind != Dim::Kind::Static ? found->name.c_str()
                                                   : nullptr;
}
