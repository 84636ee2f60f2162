//===- Options.h - command-line parser of the tools -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tools use their own parser instead of llvm::cl for two reasons:
// libPosenc.so is also a plugin of other tools, to which it must not add flags;
// and for an unknown flag llvm::cl searches for the nearest name, which takes
// seconds if the flag is long.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_OPTIONS_H
#define POSENC_DRIVER_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir::posenc {

/// Exit codes of the tools.
enum ExitCode {
  kExitSuccess = 0,
  kExitError = 1,    // the input or the environment is wrong
  kExitUsage = 2,    // the command line is wrong
  kExitMismatch = 3, // results differ by more than the limit
};

/// The flags of a tool. parse() stores their values.
class OptionParser {
public:
  /// `--help` prints `synopsis` after the tool's name and `summary` below it.
  OptionParser(llvm::StringRef tool, llvm::StringRef synopsis,
               llvm::StringRef summary);

  /// Adds a flag `--name=VALUE` or `--name VALUE`; a name of one letter has one
  /// dash, as in `-o VALUE`. The flag may be repeated: `set` is called for each
  /// value, and returns an error text or nullopt. The error text is a predicate
  /// of the flag, such as "needs a number".
  using Setter = std::function<std::optional<std::string>(llvm::StringRef)>;
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help,
           Setter set);
  /// Adds a flag that stores its value in `to`. Repeating it is an error.
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help,
           std::optional<std::string> &to);
  /// Adds a flag that may be repeated and appends its values to `to`.
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help,
           std::vector<std::string> &to);
  /// Adds a flag `--name` without a value, which sets `to` to true.
  void add(llvm::StringRef name, llvm::StringRef help, bool &to);

  /// Parses the arguments, which do not include the program's name. Returns an
  /// exit code if the program must end: after `--help` and `--version`, and
  /// after an error, which is printed as one line to standard error.
  std::optional<int> parse(llvm::ArrayRef<const char *> arguments,
                           std::vector<std::string> &positional);
  /// Parses the arguments of main(). `argc` may be 0.
  std::optional<int> parse(int argc, const char *const *argv,
                           std::vector<std::string> &positional) {
    return parse(llvm::ArrayRef(argv + (argc > 0), argv + argc), positional);
  }

private:
  struct Flag {
    std::string name, value, help;
    Setter set;
    bool takesValue;
  };
  int usageError(const std::string &message) const;
  void printHelp() const;

  std::string tool, synopsis, summary;
  std::vector<Flag> flags;
};

} // namespace mlir::posenc

#endif // POSENC_DRIVER_OPTIONS_H
