//===- Scan.cpp - tm_tensor.scan ------------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scan becomes a loop over its dimension, which combines a slice of the input
// with the accumulator and writes the accumulator to the output.
//
//===----------------------------------------------------------------------===//

#include "Converter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::hlo;

FailureOr<SmallVector<Value>> Converter::convertScan() {
  std::optional<int64_t> dim = getNumber("dimension");
  auto inclusive = dyn_cast_or_null<BoolAttr>(getAttribute("inclusive"));
  if (!dim || !inclusive || op->getNumOperands() != 3 ||
      op->getNumResults() != 2 || op->getNumRegions() != 1 ||
      !op->getRegion(0).hasOneBlock() ||
      op->getRegion(0).getNumArguments() != 2)
    return fail("is not supported in this form");
  Block &body = op->getRegion(0).front();
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (!llvm::all_of(op->getOperandTypes(), isTensor) ||
      body.back().getNumOperands() != 1)
    return fail("is not supported in this form");
  Value input = getOperand(0), output = getOperand(1), start = getOperand(2);
  RankedTensorType type = getType(input), accumulator = getType(start);
  if (*dim < 0 || *dim >= type.getRank() ||
      accumulator.getRank() + 1 != type.getRank() || getType(output) != type)
    return fail("is not supported for these shapes");
  Value zero = arith::ConstantIndexOp::create(builder, 0),
        one = arith::ConstantIndexOp::create(builder, 1);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, builder.getLoc(), input);
  Value count =
      getValueOrCreateConstantIndexOp(builder, builder.getLoc(), sizes[*dim]);
  sizes[*dim] = builder.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      strides(type.getRank(), builder.getIndexAttr(1));
  auto step = [&](OpBuilder &nested, Location loc, Value index,
                  ValueRange carried) {
    ImplicitLocOpBuilder b(loc, nested);
    offsets[*dim] = index;
    Value slice = tensor::ExtractSliceOp::create(b, accumulator, input, offsets,
                                                 sizes, strides);
    Value next = createGeneric(
        b, slice, carried[1], {}, {},
        [&](ImplicitLocOpBuilder &nested, ValueRange args) {
          IRMapping mapping;
          mapping.map(body.getArguments(), args);
          // The terminator is not registered, so it is not known as one.
          for (Operation &combined : llvm::drop_end(body))
            nested.clone(combined, mapping);
          return mapping.lookupOrDefault(body.back().getOperand(0));
        });
    Value written = tensor::InsertSliceOp::create(
        b, inclusive.getValue() ? next : carried[1], carried[0], offsets, sizes,
        strides);
    scf::YieldOp::create(b, ValueRange{written, next});
  };
  auto loop = scf::ForOp::create(builder, zero, count, one,
                                 ValueRange{output, start}, step);
  return SmallVector<Value>(loop.getResults());
}
