//===- demo.h - what the parts of the demo share ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_EXAMPLES_DEMO_DEMO_H
#define POSENC_EXAMPLES_DEMO_DEMO_H

#include "posenc/Frontend/ModelConfig.h"
#include "posenc/Reference/Frequencies.h"
#include "posenc/Reference/Tensor.h"
#include "posenc/runtime/Library.h"

#include "llvm/ADT/Twine.h"

#include <optional>
#include <string>

namespace demo {

/// The folders and the program that the demo uses.
struct Paths {
  std::string configs, libraries, compiler;
};

/// Prints an error and returns false.
bool fail(const llvm::Twine &message);

/// Reads the config of a model, such as "phi-2". Prints an error and returns
/// nullopt on failure.
std::optional<posenc::frontend::ModelConfig> readConfig(const Paths &paths,
                                                        llvm::StringRef name);

/// Converts the model's frequencies to a specification for the oracle.
posenc::reference::FrequencySpec
getSpec(const posenc::frontend::ModelConfig &model);

posenc::reference::DType getType(posenc_dtype dtype);

/// Allocates an array of 1 x tokens x heads x headDim and fills it with
/// standard normal numbers rounded to the type.
bool fillRandom(posenc::runtime::Array &array, posenc_dtype dtype,
                int64_t tokens, int64_t heads, int64_t headDim, uint64_t seed);

/// Runs posenc-compile on the config of a model.
bool compile(const Paths &paths, llvm::StringRef name,
             llvm::ArrayRef<std::string> options, llvm::StringRef library);

/// Compiles rope and attention of a model for NVIDIA GPUs and prints the
/// kernels. Calls them and compares the results with the oracle, if there is a
/// GPU.
bool showGpu(const Paths &paths);

} // namespace demo

#endif // POSENC_EXAMPLES_DEMO_DEMO_H
