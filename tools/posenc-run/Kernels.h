//===- Kernels.h - loading of kernels to call -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_KERNELS_H
#define POSENC_TOOLS_RUN_KERNELS_H

#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Input.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/runtime/Library.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <memory>
#include <string>

namespace mlir::posenc {

/// Whether a path names a compiled library, `*.so` or `*.so.*`.
bool isLibraryPath(StringRef path);

/// The device that a function runs on.
struct Device {
  enum class Kind { CPU, Cuda, Vulkan };
  Kind kind = Kind::CPU;
  /// The ordinal of a GPU among those of its API.
  int32_t number = 0;
};

/// How to open a function. Everything but the device applies to modules and
/// configs only.
struct KernelOptions {
  InputOptions input;
  /// Whether Kernel::getSource() returns the function before lowering.
  bool keepSource = false;
  /// The path of a tuning file, or empty.
  std::string tuning;
  OptLevel optLevel = OptLevel::O3;
  Device device;
};

/// A callable function of a compiled library, or of a module that was compiled
/// in memory. Owns the library.
class Kernel {
public:
  /// Opens a library, or compiles a module or config.json. `name` may be empty
  /// if there is only one function. On failure, prints an error to standard
  /// error and returns null.
  static std::unique_ptr<Kernel> open(StringRef path, StringRef name,
                                      KernelOptions options);

  /// Calls the function on its device.
  llvm::Error call(ArrayRef<posenc_value> inputs,
                   ArrayRef<posenc_value> outputs) const;

  ::posenc::runtime::Function getFunction() const { return function; }
  /// Returns the function before lowering; null without `keepSource` and for a
  /// compiled library.
  FunctionOpInterface getSource() const { return source; }

private:
  Kernel() = default;
  bool load(StringRef path, StringRef name, KernelOptions &options);
  bool find(StringRef name);

  Device device;
  // Each member depends on those above it, so the order matters.
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> diagnostics;
  OwningOpRef<ModuleOp> sourceModule;
  std::unique_ptr<JitLibrary> jit;
  ::posenc::runtime::Library library;
  ::posenc::runtime::Function function;
  FunctionOpInterface source;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_KERNELS_H
