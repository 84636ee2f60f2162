//===- AttentionRaggedFaultsTest.cpp - faults in ragged kernels -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Faults in the vector code of ragged sequences, in prefill and in decode.
//
//===----------------------------------------------------------------------===//

#include "AttentionFaults.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace posenc;
using namespace posenc::test;
namespace arith = mlir::arith;
namespace memref = mlir::memref;
namespace scf = mlir::scf;
using arith::CmpIPredicate;

namespace {

/// Matches the sequence of a task, which a bisection of cu_seqlens finds.
Matcher isSequence() { return op<scf::WhileOp>(); }

/// Matches a number of cu_seqlens or of tokens, which is made at least 0.
Matcher isNotNegative() { return op<arith::MaxSIOp>(operand(1, constant(0))); }

AttentionCase getRaggedCase() {
  AttentionCase c;
  c.form = Form::Ragged;
  c.causal = c.logSums = true;
  return c;
}

const Fault kRaggedFaults[] = {
    control(),
    {"Bisection", cmpi(CmpIPredicate::sle, usedBy<arith::SelectOp>()),
     setPredicate(CmpIPredicate::slt)},
    {"LastSequence", cmpi(CmpIPredicate::eq, operand(0, isSequence())),
     setPredicate(CmpIPredicate::ne)},
    {"NextSequence",
     op<arith::AddIOp>(operand(0, isSequence()), operand(1, constant(1))),
     setOperand(1, 0)},
    // The tile is the task less the first task of the sequence.
    {"TileOfSequence",
     op<arith::SubIOp>(operand(1, op<arith::AddIOp>(operand(1, isSequence())))),
     forward(0)},
    {"NumberOfTiles", op<arith::DivUIOp>(operand(0, op<memref::DimOp>())),
     replaceWithMin(1)},
    {"KeysOfFirstSequence",
     op<memref::LoadOp>(operand(0, argument(4)), operand(1, isSequence())),
     setOperand(1, 0)},
    // The first query has the number of keys less that of queries.
    {"QueryPosition",
     op<arith::SubIOp>(operand(0, isNotNegative()),
                       operand(1, isNotNegative())),
     swapOperands(0, 1)},
};
INSTANTIATE_TEST_SUITE_P(Ragged, AttentionFaultTest,
                         testing::ValuesIn(withSubject(
                             {getRaggedCase(), {5, 150, 40}}, kRaggedFaults)),
                         getAttentionFaultName);

AttentionCase getRaggedDecodeCase() {
  AttentionCase c = getRaggedCase();
  c.heads = 10;
  return c;
}

const Fault kRaggedDecodeFaults[] = {
    control(),
    // A query is at the begin of the sequence plus its index in the sequence.
    {"QueriesOfFirstSequence",
     op<arith::AddIOp>(operand(0, isNotNegative()),
                       operand(1, op<arith::MulIOp>())),
     forward(1)},
    {"LastTileDropped", op<arith::CeilDivUIOp>(operand(1, constant(4))),
     replaceWith<arith::DivUIOp>()},
};
INSTANTIATE_TEST_SUITE_P(RaggedDecode, AttentionFaultTest,
                         testing::ValuesIn(withSubject({getRaggedDecodeCase(),
                                                        {24, 3, 40}},
                                                       kRaggedDecodeFaults)),
                         getAttentionFaultName);

} // namespace
