//===- Control.cpp - branches, calls, returns and fences ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// Control flow has no handler: Warp::flow() implements each kind.
bool finishFlow(Decoder &d, Flow flow) {
  d.out.flow = flow;
  return d.finish(nullptr);
}

bool decodeBranch(Decoder &d) {
  d.out.isUniform = d.has(".uni");
  return d.expectOperands(1) && d.label(0, d.out.target) &&
         finishFlow(d, Flow::Branch);
}

bool decodeBranchTable(Decoder &d) {
  if (!d.has(".idx"))
    return d.fail("only .idx is supported on brx");
  d.out.isUniform = d.has(".uni");
  return d.expectOperands(2) && d.source(0, 4) && d.labels(1) &&
         finishFlow(d, Flow::BranchTable);
}

// Syntax: call (results), name, (parameters)
bool decodeCall(Decoder &d) {
  d.out.isUniform = d.has(".uni");
  const std::vector<OperandSyntax> &operands = d.getSyntax().operands;
  const OperandSyntax *results = nullptr, *params = nullptr, *name = nullptr;
  for (const OperandSyntax &operand : operands) {
    if (operand.kind == OperandSyntax::List)
      (name ? params : results) = &operand;
    else if (operand.kind == OperandSyntax::Name && !name)
      name = &operand;
    else
      return d.fail("indirect calls are not supported");
  }
  if (!name)
    return d.fail("expected the name of a function after call");
  return d.callee(*name) && d.callCopies(results, /*isResult=*/true) &&
         d.callCopies(params, /*isResult=*/false) && finishFlow(d, Flow::Call);
}

template <Flow flow> bool decodePlain(Decoder &d) {
  d.out.isUniform = d.has(".uni");
  return d.expectOperands(0) && finishFlow(d, flow);
}

void runNothing(Warp &, const Instruction &, LaneMask) {}

bool decodeSleep(Decoder &d) {
  Type type;
  return d.takeType(type) && d.expectOperands(1) && d.source(0, 4) &&
         d.finish(runNothing);
}

// griddepcontrol has no effect: kernels never overlap here.
bool decodeDependents(Decoder &d) {
  if (d.takeOneOf({".wait", ".launch_dependents"}).empty())
    return d.fail("expected .wait or .launch_dependents on griddepcontrol");
  return d.expectOperands(0) && d.finish(runNothing);
}

// The number of registers has no effect here.
bool decodeRegisterCount(Decoder &d) {
  if (!d.needTarget(90, /*isExact=*/true))
    return false;
  Type type;
  bool isComplete = !d.takeOneOf({".inc", ".dec"}).empty() && d.has(".sync") &&
                    d.has(".aligned") && d.takeType(type) && type == Type::U32;
  if (!isComplete || !d.expectOperands(1))
    return d.fail("expected 'setmaxnreg.{inc,dec}.sync.aligned.u32 count'");
  const OperandSyntax &count = d.getSyntax().operands[0];
  if (count.kind != OperandSyntax::Integer || count.value < 24 ||
      count.value > 256 || count.value % 8)
    return d.fail("setmaxnreg takes a multiple of 8 from 24 to 256");
  return d.finishWholeWarp(runNothing);
}

} // namespace

void addControlInstructions(OpcodeTable &table) {
  table["bra"] = decodeBranch;
  table["brx"] = decodeBranchTable;
  table["call"] = decodeCall;
  table["ret"] = decodePlain<Flow::Return>;
  table["exit"] = decodePlain<Flow::Exit>;
  table["trap"] = decodePlain<Flow::Trap>;
  table["nanosleep"] = decodeSleep;
  table["setmaxnreg"] = decodeRegisterCount;
  table["griddepcontrol"] = decodeDependents;
}

} // namespace posenc::ptx
