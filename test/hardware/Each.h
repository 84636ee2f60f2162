//===- Each.h - forms in processes of their own -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_EACH_H
#define POSENC_TEST_HARDWARE_EACH_H

#include "Checks.h"

#include <string>
#include <vector>

namespace posenc::hardware {

struct EachOptions {
  double formSeconds = 10;        ///< the time of a form
  double seconds = 1e9;           ///< of all: forms after that are skipped
  std::string table;              ///< a file to which rows are appended
  std::vector<std::string> first; ///< forms that run before the others
};

/// Checks the forms of subjects, each in a process of its own: a fault, a crash
/// or a call that does not return ends that process alone. Prints the name of a
/// form before it runs, then its result, and appends a row to the table.
/// Returns an exit code: 0 if all are right, 1, or 77 without a GPU.
int checkEach(const CheckKind &kind, const std::vector<Subject> &subjects,
              const std::vector<std::string> &forms,
              const EachOptions &options);

/// Measures the cases of a file in the same way: prints rows of the table of
/// results, and appends them to the table. `arguments` are options for
/// posenc-on-gpu. `match` selects cases by a part of their name.
int measureEach(const std::string &library, const std::string &cases,
                const std::string &match,
                const std::vector<std::string> &arguments,
                const EachOptions &options);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_EACH_H
