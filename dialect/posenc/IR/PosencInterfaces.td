//===- PosencInterfaces.td - interfaces --------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_POSENCINTERFACES_TD
#define POSENC_IR_POSENCINTERFACES_TD

include "mlir/IR/Interfaces.td"
include "mlir/IR/OpBase.td"

def Posenc_FrequencyScalingInterface : AttrInterface<"FrequencyScalingInterface"> {
  let cppNamespace = "::mlir::posenc";
  let description = [{
    A rule that changes the frequencies `b^(-2i/d)` of a rotary or sinusoidal
    encoding. A new rule is one attribute that implements this interface.
  }];
  let methods = [
    InterfaceMethod<[{
      Checks the rule for a rotary dimension and a base; emits an error that
      ends in the number of the violated constraint.
    }], "::llvm::LogicalResult", "verifyFor",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "int64_t":$dim, "double":$base)>,
    InterfaceMethod<[{
      The scaled frequencies in radians per position, one a pair. `dim` is the
      dimension in the exponent of the unscaled frequencies.
    }], "::llvm::SmallVector<::posenc::BigFloat>", "computeFrequencies",
      (ins "int64_t":$dim, "const ::posenc::BigFloat &":$base)>,
    InterfaceMethod<"The factor that multiplies cos and sin.",
      "::posenc::BigFloat", "computeAttentionFactor", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::posenc::BigFloat(1.0);
      }]>,
  ];
}

def Posenc_PositionalOpInterface : OpInterface<"PositionalOpInterface"> {
  let cppNamespace = "::mlir::posenc";
  let description = [{
    An operation that does the same at every position of a grid. Its loops are
    the dimensions of that grid, none if it has no such grid; every dimension of every operand is either
    one of the loops, or a size that some operands have in common, or its own.
    Tiling, shape checks and the sizes of a C entry point follow from this alone.
  }];
  let methods = [
    InterfaceMethod<"The number of position loops.", "int64_t", "getNumLoops">,
    InterfaceMethod<[{
      One number for every dimension of the operand (empty for a scalar):
      `0 <= n < getNumLoops()` is the loop it is indexed by, a greater one is a
      size shared by all dimensions with that number, -1 is neither.
    }], "::llvm::SmallVector<int64_t>", "getDimSymbols",
      (ins "unsigned":$operandNumber)>,
    InterfaceMethod<[{
      The operand number of the positions if they are a scalar to which the
      index in the only loop is added, else nothing.
    }], "std::optional<unsigned>", "getScalarPositionOperand", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return std::nullopt;">,
    InterfaceMethod<[{
      Whether what the destinations hold is part of the results; else they are
      written whole.
    }], "bool", "readsDestinations", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
  ];
}

#endif // POSENC_IR_POSENCINTERFACES_TD
