//===- Signature.h - What the metadata says about a library -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_SIGNATURE_H
#define POSENC_RUNTIME_LIB_SIGNATURE_H

#include "SizeExpression.h"

#include "posenc/runtime/runtime.h"

#include <string>
#include <vector>

namespace posenc::runtime {

/// One size in the shape of an argument.
struct Dim {
  enum class Kind {
    Static,    ///< `value` is the size
    Size,      ///< `value` is the index of a dynamic size
    Scalar,    ///< `value` is the index of the input whose value is the size
    Expression ///< `expression` is the size
  };
  Kind kind = Kind::Static;
  int64_t value = 0;
  std::string name; ///< empty for a static size
  std::optional<SizeExpression> expression;
};

} // namespace posenc::runtime

struct posenc_argument {
  std::string name;
  posenc_kind kind = POSENC_TENSOR;
  posenc_dtype dtype = POSENC_DTYPE_INVALID;
  std::vector<posenc::runtime::Dim> shape;
  bool isShapeOnly = false; ///< its elements are never read
};

namespace posenc::runtime {

/// Whether the argument is passed as a floating-point number.
inline bool isRealScalar(const posenc_argument &argument) {
  return argument.kind == POSENC_SCALAR &&
         (argument.dtype == POSENC_F64 || argument.dtype == POSENC_F32);
}

} // namespace posenc::runtime

struct posenc_library;

struct posenc_function {
  std::string name;
  std::string symbol;       ///< empty if there is no code for CPUs
  std::string cudaSymbol;   ///< empty if there is none for CUDA
  std::string vulkanSymbol; ///< empty if there is none for Vulkan
  std::vector<posenc_argument> inputs;
  std::vector<posenc_argument> outputs;
  std::vector<std::string> sizes;

  // Set when the library is linked, not by the metadata.
  const posenc_library *library = nullptr;
  void *address = nullptr;
  void *checked = nullptr;   ///< the form with DLPack tensors; may be null
  void *cuda = nullptr;      ///< the form for CUDA; may be null
  void *vulkan = nullptr;    ///< the form for Vulkan; may be null
  void *workspace = nullptr; ///< int64_t (sizes...): bytes; may be null
  bool supported = true;     ///< whether this CPU can run it

  size_t numArguments() const {
    return inputs.size() + outputs.size() + sizes.size() + (workspace ? 1 : 0);
  }
};

namespace posenc::runtime {

struct Metadata {
  std::string prefix;
  std::vector<std::string> targets;
  std::vector<posenc_function> functions;
  /// The constant that has the kernels for Vulkan, and its bytes; empty if
  /// there is none.
  std::string vulkanCode;
  uint64_t vulkanBytes = 0;
};

/// No real metadata comes near this size in bytes.
constexpr size_t maxMetadataSize = size_t(16) << 20;

/// Reads the JSON text of X_metadata(). Whatever is missing, of another type
/// or contradictory is an error that names its place; keys that are unknown
/// are left to later versions.
bool parseMetadata(const char *text, size_t size, Metadata &out,
                   std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SIGNATURE_H
