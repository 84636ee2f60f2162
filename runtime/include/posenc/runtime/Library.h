//===- Library.h - Kernel libraries in C++ ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A thin layer over the C interface (runtime.h, cuda.h, vulkan.h), which also
/// documents errors, ownership and threads. Header-only; needs neither
/// exceptions nor RTTI. A function that fails returns false or an empty object
/// and sets `error` to the text of posenc_last_error().
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

/// The value of a scalar argument of an integer type.
inline posenc_value scalar(int64_t value) {
  return {POSENC_SCALAR, {nullptr, POSENC_DTYPE_INVALID, 0, nullptr}, {value}};
}

/// The value of a scalar argument of f64 or f32.
inline posenc_value real(double value) {
  posenc_value result = scalar(0);
  result.real = value;
  return result;
}

/// The value of a tensor argument. Its data and shape must stay valid until the
/// call returns.
inline posenc_value tensor(const posenc_tensor &tensor) {
  return {POSENC_TENSOR, tensor, {0}};
}

/// An input or output in the signature of a function; valid until the library
/// is closed.
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
  /// Whether the function reads only the shape of this tensor.
  bool isShapeOnly() const { return posenc_argument_is_shape_only(argument); }
  posenc_dtype dtype() const { return posenc_argument_dtype(argument); }
  int32_t rank() const { return posenc_argument_rank(argument); }
  /// In elements; POSENC_DYNAMIC if the size is known only at the call.
  int64_t size(int32_t dim) const {
    return posenc_argument_size(argument, dim);
  }
  /// The name or expression that determines a dynamic size; "" for a static
  /// one.
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

/// A reference to a function of an open library, valid until that is closed.
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
  /// `index` must be less than the number of inputs or outputs.
  Argument input(size_t index) const {
    return Argument(posenc_function_input(function, index));
  }
  Argument output(size_t index) const {
    return Argument(posenc_function_output(function, index));
  }

  /// Computes the shape of output `index`, in elements, from the types, shapes,
  /// scalars and elements of the inputs. See posenc_output_shape(). `shape` is
  /// unchanged on failure.
  bool outputShape(const std::vector<posenc_value> &inputs, size_t index,
                   std::vector<int64_t> &shape, std::string &error) const {
    std::vector<int64_t> result(index < numOutputs() ? output(index).rank()
                                                     : 0);
    // posenc_output_shape() refuses NULL, also if it writes no size.
    int64_t none = 0;
    if (posenc_output_shape(function, inputs.data(), inputs.size(), index,
                            result.empty() ? &none : result.data()))
      return failed(error);
    shape = std::move(result);
    return true;
  }

  /// Calls the function on the CPU with tensors in the memory of the caller,
  /// in the order of the signature. See posenc_call().
  bool call(const std::vector<posenc_value> &inputs,
            const std::vector<posenc_value> &outputs,
            std::string &error) const {
    if (posenc_call(function, inputs.data(), inputs.size(), outputs.data(),
                    outputs.size()))
      return failed(error);
    return true;
  }

  /// Calls the function on a CUDA device and copies tensors there and back. See
  /// posenc_cuda_call().
  bool callOnCuda(int32_t device, const std::vector<posenc_value> &inputs,
                  const std::vector<posenc_value> &outputs,
                  std::string &error) const {
    if (posenc_cuda_call(function, device, inputs.data(), inputs.size(),
                         outputs.data(), outputs.size()))
      return failed(error);
    return true;
  }

  /// Calls the function on a Vulkan device and copies tensors there and back.
  /// See posenc_vulkan_call().
  bool callOnVulkan(uint32_t device, const std::vector<posenc_value> &inputs,
                    const std::vector<posenc_value> &outputs,
                    std::string &error) const {
    if (posenc_vulkan_call(function, device, inputs.data(), inputs.size(),
                           outputs.data(), outputs.size()))
      return failed(error);
    return true;
  }

  /// Allocates the outputs and calls the function on the CPU. `outputs` is
  /// unchanged on failure.
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

/// An open kernel library, closed by the destructor. It may be moved but not
/// copied; moving keeps its functions valid.
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

  /// Opens the library at `path`, and its weights at `weights` or beside it.
  /// See posenc_library_open_with_weights().
  static Library open(const std::string &path, std::string &error,
                      const char *weights = nullptr) {
    Library result;
    if (posenc_library_open_with_weights(path.c_str(), weights,
                                         &result.library))
      error = posenc_last_error();
    return result;
  }
  /// Opens a library whose code is in memory. The code must outlive the
  /// library; `lookup` and `ctx` are not kept. See
  /// posenc_library_from_symbols().
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

  /// A copy of the metadata as JSON; "" for an empty library.
  std::string metadata() const {
    const char *text = posenc_library_metadata(library);
    return text ? text : "";
  }
  size_t numFunctions() const { return posenc_library_num_functions(library); }
  /// The function at `index` in the order of the metadata; empty beyond the
  /// last.
  Function function(size_t index) const {
    return Function(posenc_library_function(library, index));
  }
  /// The function called `name`. If there is none, the result is empty and
  /// `error` lists the functions of the library.
  Function find(const std::string &name, std::string &error) const {
    Function result(posenc_library_find(library, name.c_str()));
    if (!result)
      error = posenc_last_error();
    return result;
  }
  /// Makes the library run its parallel loops through `parallelFor` with `ctx`,
  /// or through its default for null. Both must stay valid until the next such
  /// call or until the library is closed. Must not be called while a function
  /// of the library runs. Fails for a library without parallel loops.
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
