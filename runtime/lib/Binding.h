//===- Binding.h - Binds the arguments of a call ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_BINDING_H
#define POSENC_RUNTIME_LIB_BINDING_H

#include "Dispatch.h"
#include "Signature.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>

namespace posenc::runtime {

/// Checks that the value of an integer scalar is within the range of its type.
/// INVALID_ARGUMENT otherwise.
posenc_status checkScalar(const posenc_function &function,
                          const posenc_argument &argument, int64_t value);

/// An array of numbers; few of them are on the stack.
class NumberBuffer {
public:
  /// Returns an array of `count` numbers, which replaces the one before; null
  /// if there is no memory.
  int64_t *resize(size_t count) {
    if (count <= std::size(few))
      return few;
    many.reset(new (std::nothrow) int64_t[count]);
    return many.get();
  }

private:
  int64_t few[256];
  std::unique_ptr<int64_t[]> many;
};

/// Checks the arguments of a call against the signature and determines the
/// dynamic sizes. Allocates nothing, unless the library computes a shape for
/// arguments with more than 256 dimensions. A function that fails sets the
/// error text of the thread.
class Binding {
public:
  explicit Binding(const posenc_function &function) : function(function) {
    std::fill_n(origins,
                std::min<size_t>(function.sizes.size(), POSENC_MAX_ARGUMENTS),
                Origin{});
  }

  /// Does all checks of a call: bindInputs(), bindOutputs(), checkOverlap().
  posenc_status bindAll(const posenc_value *inputs, size_t numInputs,
                        const posenc_value *outputs, size_t numOutputs);
  /// Checks the inputs. `needData` is false if their data will not be read.
  /// Limits the number of arguments first, since all arrays here depend on it.
  posenc_status bindInputs(const posenc_value *values, size_t count,
                           bool needData);
  posenc_status bindOutputs(const posenc_value *values, size_t count);
  /// Checks that an output overlaps no other tensor, except one input that it
  /// replaces. Requires bound inputs and outputs.
  posenc_status checkOverlap() const;

  /// Computes the size of dimension `dim` of an output from the inputs alone.
  posenc_status resolve(const posenc_argument &output, size_t dim,
                        int64_t &size);

  /// Appends the arguments of the plain C function: inputs, outputs and dynamic
  /// sizes, without the workspace.
  void addArguments(CallArguments &out) const;
  const int64_t *sizeValues() const { return sizes; }

private:
  struct Origin {
    const posenc_argument *argument;
    int32_t dim;
    bool isOutput;
  };
  /// A tensor that was bound, for the check of overlaps.
  struct Bound {
    const posenc_argument *argument;
    const posenc_tensor *tensor;
    uint64_t bytes;
    bool isOutput;
  };

  posenc_status checkCount(const char *what, size_t expected, size_t count,
                           const posenc_value *values) const;
  posenc_status bindScalar(const posenc_argument &argument,
                           const posenc_value &value) const;
  posenc_status bindTensor(const posenc_argument &argument,
                           const posenc_value &value, bool isOutput,
                           bool needData);
  posenc_status bindDim(const posenc_argument &argument, int32_t dim,
                        int64_t given, bool isOutput);
  /// Computes the shapes of the outputs, once. Unknown sizes are -1.
  posenc_status computeShapes();
  /// Returns a computed size of an output.
  posenc_status getComputed(const posenc_argument &output, const Dim &dim,
                            int64_t &size);
  posenc_status checkPair(const Bound &output, const Bound &other,
                          bool &inPlace) const;

  const posenc_function &function;
  const posenc_value *inputs = nullptr;
  const posenc_value *outputs = nullptr;
  int64_t sizes[POSENC_MAX_ARGUMENTS];
  /// The first argument and dimension that had each dynamic size, for messages;
  /// a null argument if the size is not known yet.
  Origin origins[POSENC_MAX_ARGUMENTS];
  Bound tensors[POSENC_MAX_ARGUMENTS];
  size_t numTensors = 0;
  /// All dimensions of the inputs, then of the outputs, if the library computes
  /// one of these.
  NumberBuffer computed;
  const int64_t *outputShapes = nullptr; ///< in `computed`; null before
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_BINDING_H
