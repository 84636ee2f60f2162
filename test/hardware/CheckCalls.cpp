//===- CheckCalls.cpp - the calls of a module on the GPU ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "Checks.h"
#include "Compare.h"
#include "Device.h"
#include "Signature.h"

#include <algorithm>
#include <cstdio>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

static std::string formatNumber(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", number);
  return text;
}

/// Returns the largest distance of a result from the CPU's, as a fraction of
/// its limit. Throws Failure if the GPU's results differ from call to call.
static double checkCall(const runtime::Function &function, int device,
                        const FormCall &call) {
  CallInputs inputs = makeInputs(*function.get(), call);
  // Different patterns, so that bytes which are not written differ.
  std::vector<Array> right = run(function, -1, inputs.values, 0x33);
  std::vector<Array> one = run(function, device, inputs.values, 0x55);
  std::vector<Array> two = run(function, device, inputs.values, 0xaa);
  double largest = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (!hasSameBits(one[i], two[i]))
      throw Failure("two calls give different bits");
    if (!isNumeric(right[i].dtype())) {
      if (!hasSameBits(one[i], right[i]))
        throw Failure("result " + std::to_string(i) +
                      " has other bits than the CPU's");
      continue;
    }
    // Log-sum-exps of f32 have the precision of the result of attention.
    posenc_dtype type = right.front().dtype();
    Distance limit = getLimit(isNumeric(type) ? type : right[i].dtype());
    Distance distance = getDistance(one[i], right[i]);
    largest =
        std::max({largest, distance.all / limit.all, distance.row / limit.row});
  }
  return largest;
}

std::vector<std::string> hardware::listCalls(const Subject &subject) {
  runtime::Library library = openLibrary(subject.library);
  std::vector<std::string> forms;
  for (const FormCall &call : readCalls(subject.module)) {
    std::string error;
    if (library.find(call.function, error) &&
        (forms.empty() || forms.back() != call.function))
      forms.push_back(call.function);
  }
  return forms;
}

std::string hardware::checkCalls(const Subject &subject,
                                 const std::string &form) {
  runtime::Library library = openLibrary(subject.library);
  runtime::Function function = findFunction(library, form);
  int64_t calls = 0;
  double largest = 0;
  for (const FormCall &call : readCalls(subject.module)) {
    if (call.function != form || calls == subject.maxCalls)
      continue;
    std::string text;
    for (const std::string &input : call.inputs)
      text += (text.empty() ? "" : " ") + input;
    printProgress(text);
    double fraction = 0;
    try {
      fraction = checkCall(function, subject.device, call);
    } catch (const Failure &failure) {
      throw Failure(text + ": " + failure.what());
    }
    // Also wrong if it is no number.
    if (!(fraction <= 1))
      throw Failure(text + ": " + formatNumber(fraction) +
                    " of the limit from the CPU's result");
    largest = std::max(largest, fraction);
    ++calls;
  }
  return std::to_string(calls) + " calls, at most " + formatNumber(largest) +
         " of the limit from the CPU's results";
}
