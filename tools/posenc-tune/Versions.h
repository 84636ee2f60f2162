//===- Versions.h - functions compiled with tuning parameters ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_TUNE_VERSIONS_H
#define POSENC_TOOLS_TUNE_VERSIONS_H

#include "CaseLibrary.h"
#include "TuneRequest.h"

namespace mlir::posenc {

/// The functions of a request, compiled with one set of tuning parameters.
struct Version {
  Tuning tuning;
  struct Code {
    CaseLibrary library;
    /// Hash of the library file. Equal code gives equal files.
    uint64_t hash;
    /// Path of the library file, which VersionCompiler removes.
    std::string path;
  };
  /// In the order of the request.
  std::vector<Code> functions;
};

/// Compiles versions in a temporary folder, which the destructor removes.
class VersionCompiler {
public:
  explicit VersionCompiler(const TuneRequest &request) : request(request) {}
  ~VersionCompiler();

  /// Returns nullopt after an error, which is printed, or an interrupt.
  std::optional<Version> compile(const Tuning &tuning);

private:
  std::optional<Version::Code> compileFunction(size_t number,
                                               const std::string &folder);

  const TuneRequest &request;
  std::string root;
  int count = 0;
};

} // namespace mlir::posenc

#endif // POSENC_TOOLS_TUNE_VERSIONS_H
