//===- TurnsOp.cpp - posenc.turns -----------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionalVerify.h"

using namespace mlir;
using namespace mlir::posenc;

/// Verifies the operands, which also determine the type of the results.
static LogicalResult verifySources(function_ref<InFlightDiagnostic()> emitError,
                                   Value length, Value values,
                                   FrequenciesAttr frequencies) {
  if (values ? length || frequencies : !length || !frequencies)
    return emitError() << "expected either values, or both frequencies and "
                          "length (turns_c1)";
  if (!values)
    return success();
  auto type = cast<RankedTensorType>(values.getType());
  if (type.getRank() != 1 || type.isDynamicDim(0) || type.getDimSize(0) < 1 ||
      type.getDimSize(0) > 32768)
    return emitError() << "expected values of rank 1 and a static size between "
                          "1 and 32768, got "
                       << type << " (turns_c3)";
  return success();
}

LogicalResult TurnsOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &inferredTypes) {
  Location at = loc.value_or(UnknownLoc::get(context));
  FrequenciesAttr frequencies = adaptor.getFrequenciesAttr();
  if (failed(verifySources(
          [&] { return mlir::emitError(at) << "'posenc.turns' op "; },
          adaptor.getLength(), adaptor.getValues(), frequencies)))
    return failure();
  int64_t numPairs =
      frequencies
          ? frequencies.getNumPairs()
          : cast<RankedTensorType>(adaptor.getValues().getType()).getDimSize(0);
  inferredTypes.append(
      2, RankedTensorType::get({numPairs}, IntegerType::get(context, 64)));
  return success();
}

LogicalResult TurnsOp::verify() {
  if (failed(verifySources([&] { return emitOpError(); }, getLength(),
                           getValues(), getFrequenciesAttr())))
    return failure();
  if (getFrequenciesAttr() && !getFrequenciesAttr().dependsOnLength())
    return emitOpError() << "expected frequencies that depend on the length, "
                            "got "
                         << getFrequenciesAttr() << " (turns_c2)";
  return success();
}
