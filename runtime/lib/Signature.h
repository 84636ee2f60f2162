//===- Signature.h - The contents of the metadata ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_SIGNATURE_H
#define POSENC_RUNTIME_LIB_SIGNATURE_H

#include "posenc/runtime/runtime.h"

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::runtime {

/// The size of one dimension of an argument.
struct Dim {
  enum class Kind {
    Static,  ///< `value` is the size in elements
    Size,    ///< `value` is the index of a dynamic size
    Scalar,  ///< `value` is the index of the scalar input that is the size
    Computed ///< the library computes it: `value` is its index among all
             ///< dimensions of the outputs
  };
  Kind kind = Kind::Static;
  int64_t value = 0;
  std::string name; ///< of the size or input, or an expression for messages
};

} // namespace posenc::runtime

struct posenc_argument {
  std::string name;
  posenc_kind kind = POSENC_TENSOR;
  posenc_dtype dtype = POSENC_DTYPE_INVALID;
  std::vector<posenc::runtime::Dim> shape;
  bool isShapeOnly = false; ///< the function reads only the shape
  /// The library may need the value, a scalar or the only element, to compute
  /// shapes of outputs.
  bool isSizeValue = false;
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
  std::string symbol;     ///< empty if there is no code for CPUs
  std::string cudaSymbol; ///< empty if there is none for CUDA
  /// Empty if it takes no workspace on CUDA devices.
  std::string cudaWorkspaceSymbol;
  std::string vulkanSymbol;      ///< empty if there is none for Vulkan
  std::string outputSizesSymbol; ///< empty if no shape of an output is computed
  std::vector<posenc_argument> inputs;
  std::vector<posenc_argument> outputs;
  std::vector<std::string> sizes; ///< the names of the dynamic sizes

  // Set when the library is opened. Entry points that do not exist are null.
  const posenc_library *library = nullptr;
  void *address = nullptr;     ///< plain C: pointers, scalars, sizes, workspace
  void *dlpackEntry = nullptr; ///< checks DLPack tensors, then runs on the CPU
  void *cudaEntry = nullptr;   ///< takes DLPack tensors in CUDA memory
  void *vulkanEntry =
      nullptr; ///< takes DLPack tensors and a PosencVulkanLauncher
  void *outputSizes = nullptr;   ///< `<symbol>_output_sizes_by_values`
  void *workspace = nullptr;     ///< int64_t (sizes...): workspace in bytes
  void *cudaWorkspace = nullptr; ///< the same on CUDA devices
  bool supported = true;         ///< whether this CPU can run the code for CPUs

  /// The number of arguments of the plain C function.
  size_t numArguments() const {
    return inputs.size() + outputs.size() + sizes.size() + (workspace ? 1 : 0);
  }
};

namespace posenc::runtime {

/// The metadata of a library.
struct Metadata {
  std::string prefix; ///< of all symbols of the library, without '_'
  std::vector<std::string> targets;
  std::vector<posenc_function> functions;
  /// The symbol and the size in bytes of the constant with the VulkanCode; ""
  /// and 0 if there is none.
  std::string vulkanCode;
  uint64_t vulkanBytes = 0;
  /// The symbol that opens the weights; "" if there are none in a file.
  std::string weightsSymbol;
};

/// The longest metadata in bytes. Libraries have some kilobytes.
constexpr size_t maxMetadataSize = size_t(16) << 20;

/// Parses the JSON text of X_metadata(), of `size` bytes. Returns false and
/// sets `error` if the text is not JSON, or if a value is missing, has another
/// type or contradicts another. Ignores unknown keys, which later versions may
/// add.
bool parseMetadata(const char *text, size_t size, Metadata &out,
                   std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SIGNATURE_H
