//===- AttentionSourceFaultsTest.cpp - faults in attributes ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in attributes, operands and regions of posenc.attention.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "posenc/IR/Posenc.h"

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
using mlir::Builder;
using mlir::posenc::AlibiOp;
using mlir::posenc::AttentionOp;
using mlir::posenc::FrequenciesAttr;
using mlir::posenc::RotationAttr;

namespace {

const Fault kSourceFaults[] = {
    control(),
    {"Scale", op<AttentionOp>(), setAttr("scale", 0.251)},
    {"NoScale", op<AttentionOp>(), setAttr("scale", 1.0)},
    {"WindowNarrow", op<AttentionOp>(), setAttr("window_left", 29)},
    {"WindowWide", op<AttentionOp>(), setAttr("window_left", 31)},
    {"NoWindow", op<AttentionOp>(), removeAttr("window_left")},
    {"NotCausal", op<AttentionOp>(), removeAttr("causal")},
    {"AlmostCausal", op<AttentionOp>(),
     both(removeAttr("causal"), setAttr("window_right", 1))},
    {"AlibiHeads", op<AlibiOp>(), setAttr("heads", 8)},
    {"AlibiSwapsHeadAndKey", op<AlibiOp>(), swapOperands(0, 2)},
    {"SoftCap", constant(2.5), setConstant(2.4)},
    {"Pairing", op<AttentionOp>(),
     changeAttrs<RotationAttr>([](RotationAttr rotation) {
       return RotationAttr::get(
           rotation.getContext(), mlir::posenc::Pairing::Interleaved,
           rotation.getFrequencies(), rotation.getOffset(), rotation.getAxes());
     })},
    {"Base", op<AttentionOp>(),
     changeAttrs<FrequenciesAttr>([](FrequenciesAttr frequencies) {
       Builder builder(frequencies.getContext());
       return FrequenciesAttr::get(builder.getContext(), frequencies.getDim(),
                                   builder.getF64FloatAttr(10001),
                                   frequencies.getScaling(),
                                   frequencies.getPrecision());
     })},
    {"RotaryOffset", op<AttentionOp>(),
     changeAttrs<RotationAttr>([](RotationAttr rotation) {
       return RotationAttr::get(rotation.getContext(), rotation.getPairing(),
                                rotation.getFrequencies(), 5,
                                rotation.getAxes());
     })},
    {"NormEpsilon", op<AttentionOp>(), setAttr("norm_eps", 1e-3)},
    {"NoLengths", op<AttentionOp>(), change<AttentionOp>([](AttentionOp op) {
       op.getLengthsMutable().clear();
     })},
    {"NoSinks", op<AttentionOp>(),
     change<AttentionOp>([](AttentionOp op) { op.getSinksMutable().clear(); })},
};
INSTANTIATE_TEST_SUITE_P(
    Source, AttentionFaultTest,
    testing::ValuesIn(withSubject({getAllFeaturesCase(),
                                   {3, 37, 75},
                                   KeyValues::Finite,
                                   mlir::posenc::Stage::Posenc},
                                  kSourceFaults)),
    getAttentionFaultName);

} // namespace
