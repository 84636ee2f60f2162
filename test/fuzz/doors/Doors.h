//===- Doors.h - what reads inputs of others --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A door reads what its user may not have made: files, texts, and the arguments
// of calls. Each takes any bytes, and ends in a result or in an error message.
// The coverage-guided fuzzer (Fuzzer.cpp) searches for inputs that break this,
// and CorpusTest.cpp runs those that were found to be of interest.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_DOORS_H
#define POSENC_TEST_FUZZ_DOORS_H

#include "Mutator.h"
#include "Targets.h"

#include <functional>
#include <string>
#include <vector>

namespace posenc::fuzz {

/// Runs one input.
using RunInput = std::function<Outcome(llvm::StringRef input)>;
/// Changes an input, which is the first of the texts; the second is one of the
/// seeds.
using Mutate = std::string (*)(Random &random,
                               llvm::ArrayRef<std::string> texts);

struct Door {
  llvm::StringLiteral name;
  /// Creates the function that runs inputs, with the state that they share.
  RunInput (*open)();
  /// Inputs that the search begins with, besides those of the folder
  /// corpus/<name>. May be null.
  std::vector<std::string> (*getSeeds)();
  /// Null if inputs are only changed as bytes.
  Mutate mutate;
};

/// All doors.
llvm::ArrayRef<Door> getDoors();
/// The door with this name, or null.
const Door *findDoor(llvm::StringRef name);

// The functions of the doors, by file.

// CompilerDoors.cpp
RunInput openConfig(), openModule(), openGraph(), openOnnx(), openPipeline();
std::vector<std::string> getPipelineSeeds();
// CallDoor.cpp
RunInput openCalls();
/// Returns what is wrong with the result of a checked entry point: its status,
/// the buffer of its message, and whether it wrote to memory that is not of its
/// outputs, or to any memory if it refused the call. Empty if nothing is wrong.
std::string judgeCall(int32_t status, llvm::StringRef message,
                      bool isWrongWrite);
// FileDoors.cpp
RunInput openNpy(), openSafetensors(), openTuning(), openCache();
RunInput openLibrary(), openMetadata();
std::vector<std::string> getNpySeeds(), getSafetensorsSeeds(), getTuningSeeds(),
    getCacheSeeds(), getMetadataSeeds();
// OnnxMutator.cpp
/// Changes the fields of an ONNX model, so that most results can be decoded.
std::string mutateOnnx(Random &random, llvm::ArrayRef<std::string> texts);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_DOORS_H
