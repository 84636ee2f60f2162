//===- Kernels.h - functions to call, from any kind of input ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_RUN_KERNELS_H
#define POSENC_DRIVER_RUN_KERNELS_H

#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Input.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/runtime/Library.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <memory>
#include <string>

namespace mlir::posenc {

/// Whether a path names a compiled library.
bool isLibraryPath(StringRef path);

/// Where a function runs.
struct Device {
  enum class Kind { CPU, Cuda, Vulkan };
  Kind kind = Kind::CPU;
  int32_t number = 0;
};

/// A function to call: of a compiled library, or of a module that was compiled
/// in memory.
class Kernel {
public:
  /// `name` may be empty where there is only one function. With
  /// `keepSource` the module is kept as it was read. It is compiled with the
  /// choices of the file `tuning`, if that is not empty, and for the device.
  /// Null after an error on standard error.
  static std::unique_ptr<Kernel> open(StringRef path, StringRef name,
                                      InputOptions options, bool keepSource,
                                      StringRef tuning = "",
                                      const Device &device = {});

  /// Calls the function on its device.
  llvm::Error call(ArrayRef<posenc_value> inputs,
                   ArrayRef<posenc_value> outputs) const;

  ::posenc::runtime::Function getFunction() const { return function; }
  /// The function as it was read, or null.
  FunctionOpInterface getSource() const { return source; }

private:
  Kernel() = default;
  bool load(StringRef path, StringRef name, InputOptions options,
            bool keepSource, StringRef tuning);
  bool find(StringRef name);

  Device device;
  // In the order in which they depend on each other.
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> diagnostics;
  OwningOpRef<ModuleOp> sourceModule;
  std::unique_ptr<JitLibrary> jit;
  ::posenc::runtime::Library library;
  ::posenc::runtime::Function function;
  FunctionOpInterface source;
};

} // namespace mlir::posenc

#endif // POSENC_DRIVER_RUN_KERNELS_H
