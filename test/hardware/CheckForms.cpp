//===- CheckForms.cpp - forms of attention on the GPU ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckAttention.h"

#include "Calls.h"
#include "Compare.h"
#include "Device.h"
#include "Signature.h"

#include <algorithm>
#include <cstdio>
#include <set>

using namespace posenc;
using namespace posenc::hardware;
using runtime::Array;

/// Returns the largest distance of a result from the CPU's, as a fraction of
/// its limit. Throws Failure if the GPU's results differ from call to call.
static double checkCall(const runtime::Function &function, int device,
                        const FormCall &call) {
  CallInputs inputs = makeInputs(*function.get(), call);
  // Different patterns, so that bytes which are not written differ.
  std::vector<Array> right = run(function, -1, inputs.values, 0x33);
  std::vector<Array> first = run(function, device, inputs.values, 0x55);
  std::vector<Array> second = run(function, device, inputs.values, 0xaa);
  Distance limit = getLimit(right.front().dtype());
  double largest = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (!hasSameBits(first[i], second[i]))
      throw Failure("two calls give different bits");
    Distance distance = getDistance(first[i], right[i]);
    largest =
        std::max({largest, distance.all / limit.all, distance.row / limit.row});
  }
  return largest;
}

bool hardware::checkForms(const std::string &path, const std::string &module,
                          int device) {
  std::string error;
  runtime::Library library = runtime::Library::open(path, error);
  if (!library)
    throw Failure(error);
  std::set<std::string> forms, withoutKernel;
  int right = 0, wrong = 0;
  double largest = 0;
  std::string worst;
  for (const FormCall &call : readCalls(module)) {
    runtime::Function function = library.find(call.function, error);
    if (!function)
      continue;
    if (!function.get()->cudaEntry) {
      withoutKernel.insert(call.function);
      continue;
    }
    forms.insert(call.function);
    std::string text = call.function;
    for (const std::string &input : call.inputs)
      text += " " + input;
    try {
      double fraction = checkCall(function, device, call);
      // Also right if it is no number.
      bool isRight = fraction <= 1;
      ++(isRight ? right : wrong);
      if (!isRight)
        std::printf("%s: %.2f of the limit from the CPU's result\n",
                    text.c_str(), fraction);
      if (fraction >= largest) {
        largest = fraction;
        worst = call.function;
      }
    } catch (const Failure &failure) {
      ++wrong;
      std::printf("%s: %s\n", text.c_str(), failure.what());
    }
  }
  std::printf("%s: %zu forms, %d calls right, %d wrong; largest distance %.2f "
              "of the limit (%s)\n",
              path.c_str(), forms.size(), right, wrong, largest, worst.c_str());
  if (!withoutKernel.empty()) {
    std::printf("without a GPU kernel:");
    for (const std::string &name : withoutKernel)
      std::printf(" %s", name.c_str());
    std::printf("\n");
  }
  return wrong == 0 && right > 0;
}
