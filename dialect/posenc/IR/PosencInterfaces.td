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
      Checks the rule for a rotary dimension and a base. Emits an error that
      ends with the name of the violated constraint.
    }], "::llvm::LogicalResult", "verifyFor",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "int64_t":$dim, "double":$base)>,
    InterfaceMethod<[{
      Returns the scaled frequencies in radians per position, one per pair. `dim`
      is the dimension in the exponent of the unscaled frequencies.
    }], "::llvm::SmallVector<::posenc::BigFloat>", "computeFrequencies",
      (ins "int64_t":$dim, "const ::posenc::BigFloat &":$base)>,
    InterfaceMethod<"Returns the factor that multiplies cos and sin.",
      "::posenc::BigFloat", "computeAttentionFactor", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::posenc::BigFloat(1.0);
      }]>,
    InterfaceMethod<[{
      Returns the rule of the same frequencies whose attention factor is 1.
    }], "::mlir::posenc::FrequencyScalingInterface", "withUnitAttentionFactor",
      (ins), /*methodBody=*/"", /*defaultImplementation=*/"return $_attr;">,
    InterfaceMethod<[{
      Whether the rule lists a number for each pair of the whole head, so that
      frequencies do not restart on each axis of an axial encoding.
    }], "bool", "isIndexedByPair", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
      Whether the frequencies depend on a length that is only known at run time.
      `computeFrequencies` must not be called then; `posenc.turns` computes them.
    }], "bool", "dependsOnLength", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
      Returns the rule for a length that is known, or the rule itself if it does
      not depend on the length.
    }], "::mlir::posenc::FrequencyScalingInterface", "withLength",
      (ins "double":$length),
      /*methodBody=*/"", /*defaultImplementation=*/"return $_attr;">,
  ];
}

def Posenc_PositionalOpInterface : OpInterface<"PositionalOpInterface"> {
  let cppNamespace = "::mlir::posenc";
  let description = [{
    An operation that performs the same computation at every position of a grid.
    Its loops are the dimensions of the grid; it may have none. Every dimension
    of every operand is indexed by a loop, or is a size that several operands
    share, or is a size of its own. Tiling, shape checks and the sizes of a C
    entry point are derived from this information.
  }];
  let methods = [
    InterfaceMethod<"Returns the number of position loops.", "int64_t", "getNumLoops">,
    InterfaceMethod<[{
      Returns one number for every dimension of the operand (none for a scalar):
      `0 <= n < getNumLoops()` is the loop that indexes the dimension; a greater
      number is a size shared by all dimensions with that number; -1 is neither.
    }], "::llvm::SmallVector<int64_t>", "getDimSymbols",
      (ins "unsigned":$operandNumber)>,
    InterfaceMethod<[{
      Returns the operand number of the positions if they are a scalar, to which
      the index of the only loop is added; otherwise nullopt.
    }], "std::optional<unsigned>", "getScalarPositionOperand", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return std::nullopt;">,
    InterfaceMethod<[{
      Whether results depend on the contents of the destinations; otherwise these
      are overwritten completely.
    }], "bool", "readsDestinations", (ins),
      /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
  ];
}

#endif // POSENC_IR_POSENCINTERFACES_TD
