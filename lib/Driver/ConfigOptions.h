//===- ConfigOptions.h - flags that apply to a config.json ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_CONFIGOPTIONS_H
#define POSENC_LIB_DRIVER_CONFIGOPTIONS_H

#include "posenc/Driver/Input.h"
#include "posenc/Frontend/ModelConfig.h"
#include "posenc/Frontend/ModuleBuilder.h"

namespace mlir::posenc {

/// Parses the values of the flags that apply to a config.json. Prints an error
/// and returns false if one is unknown.
bool parseConfigOptions(const InputOptions &options,
                        ::posenc::frontend::ReadOptions &readOptions,
                        ModuleBuilderOptions &builderOptions);

/// Returns the first flag that is given and applies to a config.json only, or
/// an empty string.
StringRef findConfigFlag(const InputOptions &options);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_CONFIGOPTIONS_H
