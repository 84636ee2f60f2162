//===- Options.h - command-line options of the tools ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table of flags instead of llvm::cl: libPosenc.so is a plugin of other
// tools, whose flags must not grow by ours; and an unknown flag is answered at
// once, where LLVM searches for the nearest name, for seconds if it is long.
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
  kExitError = 1,    // the input or the environment is at fault
  kExitUsage = 2,    // the command line is
  kExitMismatch = 3, // results differ by more than the limit
};

/// One program's flags, filled in by parse().
class OptionParser {
public:
  /// `synopsis` follows the tool's name in the help, `summary` stands below.
  OptionParser(llvm::StringRef tool, llvm::StringRef synopsis,
               llvm::StringRef summary);

  /// `--name=VALUE` or `--name VALUE`; a name of one letter is `-o VALUE`.
  /// `set` returns an error text, or nothing. May be given several times.
  using Setter = std::function<std::optional<std::string>(llvm::StringRef)>;
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help,
           Setter set);
  /// The same into a string; twice is an error.
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help,
           std::optional<std::string> &to);
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help,
           std::vector<std::string> &to);
  /// `--name`.
  void add(llvm::StringRef name, llvm::StringRef help, bool &to);

  /// Parses the arguments without the program's name. Returns an exit code if
  /// the program is to end: after `--help` and `--version`, and after an
  /// error, which is one line on standard error.
  std::optional<int> parse(llvm::ArrayRef<const char *> arguments,
                           std::vector<std::string> &positional);
  /// The same of main()'s arguments, of which there may be none.
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
