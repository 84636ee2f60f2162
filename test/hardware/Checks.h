//===- Checks.h - checks of kernels on a GPU --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_HARDWARE_CHECKS_H
#define POSENC_TEST_HARDWARE_CHECKS_H

#include "posenc/runtime/Library.h"

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::hardware {

/// The library of kernels that is checked, and the module with its calls.
struct Subject {
  std::string library, module;
  int device = 0;
  bool isSmall = false;         ///< small sizes, for the fake driver
  int64_t maxCalls = INT64_MAX; ///< of each form
};

/// A kind of check. A library has a list of forms, which are functions, or a
/// function and a layout of its tensors. A fault of a form makes the CUDA
/// context useless, so each one may have a process of its own.
struct CheckKind {
  const char *name;
  bool hasModule;
  bool needsForms; ///< whether a library without forms is an error
  /// Lists the forms without a call of the CUDA driver. Throws Failure.
  std::vector<std::string> (*list)(const Subject &subject);
  /// Checks a form. Prints what is done next, to find a call that does not
  /// return, and returns a summary. Throws Failure for a wrong result.
  std::string (*check)(const Subject &subject, const std::string &form);
};

/// bits: a function returns the bits of the CPU, for several sizes.
/// calls: the calls of a function in the module (see readCalls), once on the
/// CPU and twice on the GPU, whose results have the same bits and are close to
/// the CPU's. rows: attention from queries to keys and values [sequence, token,
/// head, channel], or of ragged sequences; long sequences are close to the
/// CPU's, and a row has the same bits in each call, alone or in a batch, for
/// all queries or in chunks. strides: the same for tensors of several strides,
/// some of them 0, and without keys: what tensor maps of the driver have to
/// accept.
const std::vector<CheckKind> &getCheckKinds();

/// Opens a library. Throws Failure.
runtime::Library openLibrary(const std::string &path);
/// Finds a function with a GPU kernel. Throws Failure.
runtime::Function findFunction(const runtime::Library &library,
                               const std::string &name);
/// Prints a line at once.
void printProgress(const std::string &line);

std::vector<std::string> listBits(const Subject &subject);
std::string checkBits(const Subject &subject, const std::string &form);
std::vector<std::string> listCalls(const Subject &subject);
std::string checkCalls(const Subject &subject, const std::string &form);
std::vector<std::string> listRows(const Subject &subject);
std::string checkRows(const Subject &subject, const std::string &form);
std::vector<std::string> listStrides(const Subject &subject);
std::string checkStrides(const Subject &subject, const std::string &form);

} // namespace posenc::hardware

#endif // POSENC_TEST_HARDWARE_CHECKS_H
