//===- Library.h - Kernel libraries for C++ ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A thin layer over runtime.h; header-only, and neither exceptions nor RTTI
/// are needed. What fails returns false or an empty object and sets `error`.
///
/// \code
///   std::string error;
///   Library library = Library::open("libllama.so", error);
///   Function rope = library.find("rope", error);
///   std::vector<Array> results;
///   if (!rope || !rope.call({q.value(), k.value(), pos.value()}, results,
///                           error))
///     return report(error);
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIBRARY_H
#define POSENC_RUNTIME_LIBRARY_H

#include "posenc/runtime/Array.h"
#include "posenc/runtime/cuda.h"
#include "posenc/runtime/runtime.h"
#include "posenc/runtime/vulkan.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace posenc::runtime {

/// The value of a scalar argument, also of one of 32 bits.
inline posenc_value scalar(int64_t value) {
  return {POSENC_SCALAR, {nullptr, POSENC_DTYPE_INVALID, 0, nullptr}, {value}};
}

/// The value of a scalar argument of f64 or f32.
inline posenc_value real(double value) {
  posenc_value result = scalar(0);
  result.real = value;
  return result;
}

/// The value of a tensor argument. Its data and its shape stay the caller's, and
/// must live until the call is over.
inline posenc_value tensor(const posenc_tensor &tensor) {
  return {POSENC_TENSOR, tensor, {0}};
}

/// An input or output in the signature of a function.
class Argument {
public:
  explicit Argument(const posenc_argument *argument) : argument(argument) {}

  std::string name() const { return posenc_argument_name(argument); }
  bool isScalar() const {
    return posenc_argument_kind(argument) == POSENC_SCALAR;
  }
  /// Whether it is a scalar of f64 or f32.
  bool isReal() const {
    return isScalar() && (dtype() == POSENC_F64 || dtype() == POSENC_F32);
  }
  /// Whether the elements of this tensor are never read.
  bool isShapeOnly() const { return posenc_argument_is_shape_only(argument); }
  posenc_dtype dtype() const { return posenc_argument_dtype(argument); }
  int32_t rank() const { return posenc_argument_rank(argument); }
  /// POSENC_DYNAMIC where the size is known only at the call.
  int64_t size(int32_t dim) const {
    return posenc_argument_size(argument, dim);
  }
  /// The name that decides a dynamic size; "" for a static one.
  std::string sizeName(int32_t dim) const {
    const char *name = posenc_argument_size_name(argument, dim);
    return name ? name : "";
  }
  /// As in MLIR: "?x?x32x128xf32", or "i64" for a scalar.
  std::string type() const {
    std::string text;
    for (int32_t dim = 0; dim < rank(); ++dim) {
      int64_t known = size(dim);
      text += (known == POSENC_DYNAMIC ? "?" : std::to_string(known)) + "x";
    }
    return text + posenc_dtype_name(dtype());
  }

private:
  const posenc_argument *argument;
};

/// A function of an open library; a plain reference, valid as long as that is.
class Function {
public:
  Function() = default;
  explicit Function(const posenc_function *function) : function(function) {}

  explicit operator bool() const { return function != nullptr; }
  const posenc_function *get() const { return function; }

  std::string name() const {
    const char *name = posenc_function_name(function);
    return name ? name : "";
  }
  size_t numInputs() const { return posenc_function_num_inputs(function); }
  size_t numOutputs() const { return posenc_function_num_outputs(function); }
  /// `index` must be below the number of inputs or outputs.
  Argument input(size_t index) const {
    return Argument(posenc_function_input(function, index));
  }
  Argument output(size_t index) const {
    return Argument(posenc_function_output(function, index));
  }

  /// Sets `shape` to that of output `index`; of the inputs only types, shapes and
  /// scalars count. False with `error` set as posenc_output_shape() fails, and
  /// `shape` as it was.
  bool outputShape(const std::vector<posenc_value> &inputs, size_t index,
                   std::vector<int64_t> &shape, std::string &error) const {
    std::vector<int64_t> result(index < numOutputs() ? output(index).rank()
                                                     : 0);
    // A scalar of a size is still a valid place to write nothing to.
    int64_t none = 0;
    if (posenc_output_shape(function, inputs.data(), inputs.size(), index,
                            result.empty() ? &none : result.data()))
      return failed(error);
    shape = std::move(result);
    return true;
  }

  /// Calls the function, with inputs and outputs in the order of its signature,
  /// on memory of the caller's. An output may be exactly one of the inputs.
  /// False with `error` set as posenc_call() fails.
  bool call(const std::vector<posenc_value> &inputs,
            const std::vector<posenc_value> &outputs,
            std::string &error) const {
    if (posenc_call(function, inputs.data(), inputs.size(), outputs.data(),
                    outputs.size()))
      return failed(error);
    return true;
  }

  /// The same on a CUDA device, with copies there and back.
  bool callOnCuda(int32_t device, const std::vector<posenc_value> &inputs,
                  const std::vector<posenc_value> &outputs,
                  std::string &error) const {
    if (posenc_cuda_call(function, device, inputs.data(), inputs.size(),
                         outputs.data(), outputs.size()))
      return failed(error);
    return true;
  }

  /// The same on a Vulkan device.
  bool callOnVulkan(uint32_t device, const std::vector<posenc_value> &inputs,
                    const std::vector<posenc_value> &outputs,
                    std::string &error) const {
    if (posenc_vulkan_call(function, device, inputs.data(), inputs.size(),
                           outputs.data(), outputs.size()))
      return failed(error);
    return true;
  }

  /// Allocates the outputs, then calls; `outputs` is as it was where that fails.
  bool call(const std::vector<posenc_value> &inputs,
            std::vector<Array> &outputs, std::string &error) const {
    std::vector<Array> arrays(numOutputs());
    std::vector<posenc_value> values;
    for (size_t i = 0; i < arrays.size(); ++i) {
      std::vector<int64_t> shape;
      if (!outputShape(inputs, i, shape, error) ||
          !Array::allocate(output(i).dtype(), std::move(shape), arrays[i],
                           error))
        return false;
      values.push_back(arrays[i].value());
    }
    if (!call(inputs, values, error))
      return false;
    outputs = std::move(arrays);
    return true;
  }

private:
  static bool failed(std::string &error) {
    error = posenc_last_error();
    return false;
  }

  const posenc_function *function = nullptr;
};

/// An open kernel library; closed by the destructor.
class Library {
public:
  Library() = default;
  ~Library() { posenc_library_close(library); }
  Library(Library &&other) noexcept : library(other.library) {
    other.library = nullptr;
  }
  Library &operator=(Library &&other) noexcept {
    std::swap(library, other.library);
    return *this;
  }
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  /// Opens the library at `path`. An empty one with `error` set as
  /// posenc_library_open() fails.
  static Library open(const std::string &path, std::string &error) {
    Library result;
    if (posenc_library_open(path.c_str(), &result.library))
      error = posenc_last_error();
    return result;
  }
  /// The same for code in memory, which must outlive the library. `lookup` is
  /// called with `ctx` before this returns, and neither is kept.
  static Library fromSymbols(const std::string &metadata,
                             posenc_symbol_lookup lookup, void *ctx,
                             std::string &error) {
    Library result;
    if (posenc_library_from_symbols(metadata.c_str(), lookup, ctx,
                                    &result.library))
      error = posenc_last_error();
    return result;
  }

  explicit operator bool() const { return library != nullptr; }
  posenc_library *get() const { return library; }

  /// The library's JSON, a copy; empty for an empty library.
  std::string metadata() const {
    const char *text = posenc_library_metadata(library);
    return text ? text : "";
  }
  size_t numFunctions() const { return posenc_library_num_functions(library); }
  /// In the order of the metadata; an empty one beyond the last.
  Function function(size_t index) const {
    return Function(posenc_library_function(library, index));
  }
  /// Valid until the library is closed. An empty one, with `error` listing those
  /// that there are, for a name that none has.
  Function find(const std::string &name, std::string &error) const {
    Function result(posenc_library_find(library, name.c_str()));
    if (!result)
      error = posenc_last_error();
    return result;
  }
  /// Runs the library's loops through `parallelFor` with `ctx`, both of which
  /// must stay valid until the next such call or the close; null asks for the
  /// default. Not while a function runs. False with `error` set for a library
  /// without parallel loops.
  bool setParallelFor(posenc_parallel_for parallelFor, void *ctx,
                      std::string &error) {
    if (posenc_library_set_parallel_for(library, parallelFor, ctx) == POSENC_OK)
      return true;
    error = posenc_last_error();
    return false;
  }

private:
  posenc_library *library = nullptr;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIBRARY_H
