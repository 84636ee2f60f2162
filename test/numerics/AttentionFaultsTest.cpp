//===- AttentionFaultsTest.cpp - seeded faults in attention ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each fault is seeded into the source of an attention or into its lowered
// code. The result is compiled and called, and its error must exceed the limits
// that the unchanged code keeps.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"

#include <limits>
#include <optional>

using namespace posenc;
using namespace posenc::test;

namespace {

/// An attention with most of the op's features.
AttentionCase getCase() {
  AttentionCase c;
  c.heads = 6;
  c.causal = c.norms = c.alibi = c.softCap = c.sinks = c.logSums = true;
  c.lengths = true;
  c.left = 30;
  c.scale = 0.25;
  c.queryAngles = c.keyAngles = Angles::TokenIndices;
  return c;
}

const Fault kFaults[] = {
    {"Control", "", ""},
    {"Scale", "scale = 0.25", "scale = 0.251"},
    {"NoScale", "scale = 0.25", "scale = 1.0"},
    {"WindowNarrow", "window_left = 30", "window_left = 29"},
    {"WindowWide", "window_left = 30", "window_left = 31"},
    {"NoWindow", "window_left = 30", ""},
    {"NotCausal", " causal", ""},
    {"AlmostCausal", " causal", " window_right = 1"},
    {"Heads", "heads = 6", "heads = 8"},
    {"SwappedIndices", "alibi(%h, %i, %j)", "alibi(%j, %i, %h)"},
    {"Cap", "%cap = arith.constant 2.5", "%cap = arith.constant 2.4"},
    {"Pairing", "pairing = half", "pairing = interleaved"},
    {"Base", "base = 10000", "base = 10001"},
    {"Window", "offset = 4", "offset = 5"},
    {"Epsilon", "norm_eps = 1.0e-5", "norm_eps = 1.0e-3"},
    {"NoLengths", "lengths(%lengths : tensor<?xi64>)", ""},
    {"NoSinks", "sinks(%sinks : tensor<6xf32>)", ""},
};

// Cases that are vectorized, with features that getCase() lacks: pages, ragged
// sequences, decode.

AttentionCase getVectorCase() {
  AttentionCase c;
  c.heads = 6;
  c.causal = c.norms = c.sinks = c.logSums = c.lengths = true;
  c.left = 150;
  c.scale = 0.25;
  c.queryAngles = Angles::Positions;
  c.keyAngles = Angles::TokenIndices;
  return c;
}

AttentionCase getPagedCase() {
  AttentionCase c;
  c.form = Form::Paged;
  c.causal = true;
  c.mask = Mask::Added;
  return c;
}

AttentionCase getRaggedCase() {
  AttentionCase c;
  c.form = Form::Ragged;
  c.causal = c.logSums = true;
  return c;
}

AttentionCase getRaggedDecodeCase() {
  AttentionCase c = getRaggedCase();
  c.heads = 10;
  return c;
}

AttentionCase getOneQueryCase() {
  AttentionCase c = getVectorCase();
  c.staticQueries = 1;
  c.heads = 4;
  return c;
}

/// Four blocks of query rows per key head, the last one not full. Only the
/// first and the last key tile need a mask.
AttentionCase getMultiTokenCase() {
  AttentionCase c;
  c.staticQueries = 3;
  c.heads = 10;
  c.causal = c.sinks = c.logSums = c.lengths = true;
  c.left = 157;
  c.scale = 0.25;
  return c;
}

AttentionCase getDynamicCase() {
  AttentionCase c = getMultiTokenCase();
  c.staticQueries = 0;
  return c;
}

/// Multi-token decode with regions and a mask.
AttentionCase getScoreModCase() {
  AttentionCase c;
  c.staticQueries = 3;
  c.heads = 10;
  c.softCap = c.alibi = c.where = c.document = true;
  c.mask = Mask::Added;
  return c;
}

/// One key head, whose keys are divided into KV splits.
AttentionCase getSplitKVCase() {
  AttentionCase c;
  c.staticQueries = 1;
  c.keyHeadMajor = c.sinks = true;
  c.heads = 4;
  c.keyHeads = 1;
  c.dim = c.valueDim = 64;
  return c;
}

/// Faults in the output of posenc-to-linalg.
const Fault kLinalgFaults[] = {
    {"Control", "", ""},
    {"HeadGroup", "(d0 floordiv 3)", "(d0 floordiv 6)"},
    {"WindowConstant", "constant 30 : index", "constant 29 : index"},
    {"KeysOfTile", "(32, d0 - d1)", "(31, d0 - d1)"},
    {"QueriesOfTile", "* -16 + s0, 16)", "* -16 + s0, 15)"},
    {"Step", "step %c32", "step %c30"},
    {"NoMax", "arith.cmpf ogt", "arith.cmpf olt"},
    {"NoExp", "math.exp ", "math.exp2 "},
    {"Causal", "arith.cmpi sle", "arith.cmpi slt"},
    {"NoLog", "math.log ", "math.log2 "},
    {"NoRescaling", "math.fma %in, %out, %in_*", "arith.addf %out, %$0"},
    {"SumIsMax", "arith.addf %in, %out : f32",
     "arith.maximumf %in, %out : f32"},
    {"Norm", "math.sqrt", "math.absf"},
    {"Window", "arith.cmpi sle, %*, %c30", "arith.cmpi sge, %$0, %c30"},
    {"AllKeysSeen", "arith.select %*, %*, %cst* : f32 linalg.yield",
     "arith.addf %$1, %$1 : f32\nlinalg.yield"},
};

/// Faults in the prefill kernel with 32-byte vectors.
const Fault kVectorFaults[] = {
    {"Control", "", ""},
    {"Scale", "dense<0.360673755>", "dense<0.3608>"},
    {"NoMax", "arith.subf %*, %*#0 :", "arith.maximumf %$0, %$0 :"},
    {"MaxIsMin", "arith.cmpf ogt", "arith.cmpf olt"},
    {"MaxBegins", "dense<-3.40282347E+38>", "dense<3.40282347E+38>"},
    {"NoRescalingOfAcc", "math.fma %*, %*, %*#", "arith.addf %$0, %$2#"},
    {"NoRescalingOfSum",
     "math.fma %*, %*, %* : vector<8xf32> vector.store %*, %alloca",
     "arith.addf %$0, %$2 : vector<8xf32>\nvector.store %$3, %alloca"},
    {"SumIsMax", "arith.addf %arg*, %* : vector<8xf32> scf.yield",
     "arith.maximumf %$0, %$1 : vector<8xf32>\nscf.yield"},
    {"NoDivision", "arith.divf %*, %* : vector<8xf32>",
     "arith.mulf %$0, %$1 : vector<8xf32>"},
    {"Exponent", "dense<23>", "dense<22>"},
    {"Magic", "dense<0x4B40007F>", "dense<0x4B400080>"},
    {"Coefficient", "dense<0.0555073395>", "dense<0.0556>"},
    {"LogOfTwo", "dense<0.693147182>", "dense<0.6932>"},
    {"LogExponent", "dense<0.693145751>", "dense<0.6932>"},
    {"LogMantissa", "dense<8388607>", "dense<4194303>"},
    {"LogSeries", "dense<0.666666686>", "dense<0.66>"},
    {"SinkInBase2", "dense<1.44269502>", "dense<1.0>"},
    {"Causal", "arith.cmpi slt, %*, %* : vector<8xi32>",
     "arith.cmpi sle, %$0, %$1 : vector<8xi32>"},
    {"WindowLanes", "arith.cmpi sge, %*, %* : vector<8xi32>",
     "arith.cmpi sgt, %$0, %$1 : vector<8xi32>"},
    {"WindowNarrow", "constant -150 : index", "constant -149 : index"},
    {"WindowWide", "constant -150 : index", "constant -151 : index"},
    {"KeysOfTile",
     "{ %* = arith.subi %*, %* : index %* = arith.minsi %*, %c* : index",
     "{\n%$0 = arith.subi %$1, %$2 : index\n"
     "%$3 = arith.minsi %$4, %c1 : index"},
    {"TileDropped", "scf.for %* = %* to %* step %c* { %* = arith.subi",
     "%two = arith.addi %$3, %$3 : index\n"
     "scf.for %$0 = %$1 to %$2 step %two {\n%$4 = arith.subi"},
    {"QueryTail", "arith.ceildivsi %*, %c16", "arith.divsi %$0, %c16"},
    {"DiagonalUnmasked", "arith.cmpi slt, %*, %* : index %* = arith.ori",
     "arith.cmpi sgt, %$0, %$1 : index\n%$2 = arith.ori"},
    {"WindowUnmasked", "arith.cmpi sgt, %*, %* : index %* = arith.ori",
     "arith.cmpi slt, %$0, %$1 : index\n%$2 = arith.ori"},
    {"HeadGroup", "arith.divui %*, %c3", "arith.divui %$0, %c6"},
    {"Lane", "[0, 1, 2, 3, 4, 5, 6, 7]", "[0, 1, 2, 3, 5, 4, 6, 7]"},
    {"Transposition", "[4, 12, 5, 13, 6, 14, 7, 15]",
     "[4, 12, 5, 13, 7, 14, 6, 15]"},
    {"ValuesAreKeys", "vector.load %arg2[", "vector.load %arg1["},
    {"OtherVector", "vector.load %*[%*, %*, %c8]",
     "vector.load %$0[%$1, %$2, %c0]"},
    {"RotationSign", "arith.negf", "math.absf"},
    {"RotationEighth", "dense<536870912>", "dense<0>"},
    {"KeyPosition", "%* = arith.index_cast %* : index to i64",
     "%more$0 = arith.addi %$1, %c1 : index\n"
     "%$0 = arith.index_cast %more$0 : index to i64"},
    {"QueryIndex", "arith.subi %*, %dim :", "arith.subi %$0, %c1 :"},
    {"NormMean", "6.250000e-02 : f32", "6.300000e-02 : f32"},
    {"NormRoot", "math.sqrt", "math.absf"},
    {"NormEpsilon", "9.99999974E-6", "1.0E-3"},
};

const Fault kPagedFaults[] = {
    {"Control", "", ""},
    {"PagesOfTheFirst", "memref.load %*[%*, %*] : memref<?x?xi32,",
     "memref.load %$0[%c0, %$2] : memref<?x?xi32,"},
    {"SlotDropped", "arith.remui %*, %dim*", "arith.minsi %$0, %c0"},
    {"SlotOfBatch", "arith.remui %*, %dim* : index",
     "arith.minui %$0, %c1 : index"},
    {"MaskSign", "arith.addf %*#0, %* : vector<8xf32> %* = arith.cmpf une",
     "arith.subf %$0#0, %$1 : vector<8xf32>\n%$2 = arith.cmpf une"},
    {"MaskOfOthers", "arith.cmpf une", "arith.cmpf ueq"},
};

const Fault kRaggedFaults[] = {
    {"Control", "", ""},
    {"Bisection", "arith.cmpi sle, %*, %* : index",
     "arith.cmpi slt, %$0, %$1 : index"},
    {"EndOfSequence", "arith.cmpi eq, %*#0, %*", "arith.cmpi ne, %$0#0, %$1"},
    {"NextSequence", "arith.addi %*#0, %c1", "arith.addi %$0#0, %c0"},
    {"TileOfSequence",
     "arith.subi %*, %* : index %* = arith.maxsi %*, %c0 : index %* = "
     "arith.muli",
     "arith.maxsi %$0, %c0 : index\n%$2 = arith.maxsi %$3, %c0 : index\n%$4 = "
     "arith.muli"},
    {"TilesOfAll", "arith.divui %dim, %c*", "arith.minsi %dim, %c1"},
    {"KeysOfTheFirst", "memref.load %arg4[%*#0]", "memref.load %arg4[%c0]"},
    {"QueryIndex",
     "arith.subi %*, %* : index %* = arith.addi %*, %* : index %* = arith.cmpi "
     "sgt",
     "arith.subi %$1, %$0 : index\n%$2 = arith.addi %$3, %$4 : index\n%$5 = "
     "arith.cmpi sgt"},
};

const Fault kOneQueryFaults[] = {
    {"Control", "", ""},
    {"Scale", "dense<0.360673755>", "dense<0.3608>"},
    {"NoMax", "arith.subf %*, %* : vector<8xf32> %* = arith.cmpf ogt",
     "arith.maximumf %$0, %$0 : vector<8xf32>\n%$2 = arith.cmpf ogt"},
    {"MaxIsMin", "arith.cmpf ogt", "arith.cmpf olt"},
    {"NoRescalingOfAcc",
     "arith.mulf %*, %* : vector<8xf32> vector.store %*, %alloca*[%c0, %arg*]",
     "arith.maximumf %$0, %$0 : vector<8xf32>\n"
     "vector.store %$2, %$3[%c0, %$4]"},
    {"NoRescalingOfSum",
     "arith.mulf %*, %* : vector<8xf32> vector.store %*, %alloca*[%c1, %c0]",
     "arith.maximumf %$0, %$0 : vector<8xf32>\n"
     "vector.store %$2, %$3[%c1, %c0]"},
    {"SumOfOldWeights",
     "scf.yield %*#0, %*#1 : vector<8xf32>, vector<8xf32> } else { scf.yield "
     "%*#1, %*#2",
     "scf.yield %$2#1, %$2#2 : vector<8xf32>, vector<8xf32>\n} else {\n"
     "scf.yield %$2#1, %$2#2"},
    {"Exponent", "dense<23>", "dense<22>"},
    {"LastKeyTwice", "arith.cmpi sgt, %*, %cst* : vector<8xi32>",
     "arith.cmpi sge, %$0, %$1 : vector<8xi32>"},
    {"LanesOfSums", "[0, 8, 1, 9, 4, 12, 5, 13]", "[8, 0, 1, 9, 4, 12, 5, 13]"},
    {"AcrossKeys", "[4, 5, 6, 7, 0, 1, 2, 3]", "[0, 1, 2, 3, 4, 5, 6, 7]"},
    {"TileDropped", "scf.for %* = %* to %* step %c64 {",
     "%two = arith.constant 128 : index\n"
     "scf.for %$0 = %$1 to %$2 step %two {"},
    {"WindowNarrow", "constant -151 : index", "constant -150 : index"},
    {"ValuesAreKeys", "vector.load %arg2[", "vector.load %arg1["},
    {"SinkInBase2", "dense<1.44269502>", "dense<1.0>"},
    {"LogOfTwo", "dense<0.693147182>", "dense<0.6932>"},
    {"RotationSign", "arith.negf", "math.absf"},
    {"NormEpsilon", "9.99999974E-6", "1.0E-3"},
    {"KeyPosition", "%* = arith.index_cast %* : index to i64",
     "%more$0 = arith.addi %$1, %c1 : index\n"
     "%$0 = arith.index_cast %more$0 : index to i64"},
};

const Fault kMultiTokenFaults[] = {
    {"Control", "", ""},
    {"TokenOfLanes", "arith.divui %*, %* : vector<8xi32>",
     "arith.minui %$0, %$1 : vector<8xi32>"},
    {"NumberOfLanes", "[0, 1, 2, 3, 0, 1, 2, 3]", "[3, 1, 2, 0, 3, 1, 2, 0]"},
    {"KeyOfLanes", "[0, 0, 0, 0, 1, 1, 1, 1]", "[0, 0, 0, 0, 0, 0, 0, 0]"},
    {"AlmostCausal",
     "arith.cmpi sgt, %*, %cst* : vector<8xi32> %* = arith.andi",
     "arith.cmpi sge, %$0, %$1 : vector<8xi32>\n%$2 = arith.andi"},
    {"WindowNarrow", "arith.cmpi sle, %*, %cst* : vector<8xi32>",
     "arith.cmpi slt, %$0, %$1 : vector<8xi32>"},
    {"AnyMaskDoes", "arith.andi %*, %* : vector<8xi1> %* = arith.select",
     "arith.ori %$0, %$1 : vector<8xi1>\n%$2 = arith.select"},
    {"WindowUnmasked", "arith.cmpi sge, %*, %* : index",
     "arith.cmpi ne, %$0, %$1 : index"},
    {"DiagonalUnmasked", "constant -2 : index", "constant 0 : index"},
    {"QueryDropped", "scf.for %* = %c0 to %c15", "scf.for %$0 = %c0 to %c8"},
    {"QueryOfOtherToken", "arith.divui %arg*, %c5 : index",
     "arith.minui %$0, %c2 : index"},
    {"RowsOfKeyHead", "arith.muli %arg*, %c16 : index",
     "arith.muli %$0, %c8 : index"},
    {"WeightsOfFirstBlock",
     "arith.remui %*, %c4 : index %* = arith.muli %*, %c128 : index",
     "arith.minui %$0, %c0 : index\n%$1 = arith.muli %$2, %c128 : index"},
    {"MaxOfFirstBlock",
     "arith.muli %*, %c2 : index %* = vector.load %*[%*, %c0] : "
     "memref<16x8xf32>",
     "arith.muli %$0, %c0 : index\n%$1 = vector.load %$2[%$3, %c0] : "
     "memref<16x8xf32>"},
    {"HeadOfSink",
     "arith.remui %*, %c5 : index %* = arith.addi %*, %* : index "
     "%* = memref.load",
     "arith.minui %$0, %c4 : index\n%$1 = arith.addi %$2, %$3 : index\n"
     "%$4 = memref.load"},
    {"ResultOfOtherToken", "arith.divui %*, %c5 : index %* = vector.extract",
     "arith.minui %$0, %c2 : index\n%$1 = vector.extract"},
    {"ResultDropped", "arith.minsi %*, %c4 : index scf.for",
     "arith.minsi %$0, %c2 : index\nscf.for"},
    {"KeyHeadOfBlock", "scf.for %* = %c0 to %c32 step %c2 { %* = arith.divui",
     "scf.for %$0 = %c0 to %c32 step %c2 {\n%$1 = arith.remui"},
};

/// Faults in decode with regions and a mask.
const Fault kScoreModFaults[] = {
    {"Control", "", ""},
    {"AlibiSign", "arith.negf %* : vector<8xf32>",
     "math.absf %$0 : vector<8xf32>"},
    {"CapTwice", "dense<2.500000e+00>", "dense<5.000000e+00>"},
    {"Base2", "dense<1.44269502>", "dense<1.0>"},
    {"MaskLeftOut", "arith.cmpf une", "arith.cmpf ueq"},
    {"MaskSign", "arith.addf %*, %* : vector<8xf32> %* = arith.cmpf une",
     "arith.subf %$0, %$1 : vector<8xf32>\n%$2 = arith.cmpf une"},
    {"WhereNot", "arith.cmpi ne, %*, %* : vector<8xindex>",
     "arith.cmpi eq, %$0, %$1 : vector<8xindex>"},
    {"NothingSkipped", "arith.cmpf oeq, %*, %cst* : vector<8xf32> %* = math",
     "arith.cmpf olt, %$0, %$1 : vector<8xf32>\n%$2 = math"},
};

/// Faults in code that only a dynamic number of queries has.
const Fault kDynamicFaults[] = {
    {"Control", "", ""},
    {"LastBlockDropped", "arith.ceildivui %*, %c4 : index",
     "arith.divui %$0, %c4 : index"},
    {"QueriesOfFourHeads", "arith.muli %*, %c5 : index %* = arith.ceildivui",
     "arith.muli %$0, %c4 : index\n%$1 = arith.ceildivui"},
};

/// Faults in the decode kernel for ragged sequences.
const Fault kRaggedDecodeFaults[] = {
    {"Control", "", ""},
    {"QueryOfTheFirst",
     "arith.remui %arg*, %c5 : index %* = arith.addi %*, %* : index %* = "
     "arith.addi %*, %* : index %* = arith.addi %*, %* : index",
     "arith.remui %$0, %c5 : index\n%$1 = arith.addi %$2, %$3 : index\n"
     "%$4 = arith.addi %$5, %$6 : index\n%$7 = arith.addi %$9, %c0 : index"},
    {"LastBlockDropped", "arith.ceildivui %*, %c4 : index",
     "arith.divui %$0, %c4 : index"},
};

/// Faults in KV splits that show whether one task or several compute them.
const Fault kSplitKVFaults[] = {
    {"Control", "", ""},
    {"MaxBegins", "dense<-3.40282347E+38>", "dense<3.40282347E+38>"},
    {"NoRescalingOfMergedSum",
     "math.fma %*, %*, %* : vector<8xf32> vector.store %*, %alloca*[%c1, %c0]",
     "arith.addf %$0, %$2 : vector<8xf32>\nvector.store %$3, %$4[%c1, %c0]"},
    {"NoRescalingOfMergedAcc",
     "math.fma %*, %*, %* : vector<8xf32> vector.store %*, %alloca*[%c*, "
     "%arg*]",
     "arith.addf %$0, %$2 : vector<8xf32>\nvector.store %$3, %$4[%$5, %$6]"},
    {"NoRescalingOfSum",
     "arith.mulf %*, %* : vector<8xf32> %* = math.fma %*, %*, %* : "
     "vector<8xf32> vector.store %*, %alloca*[%c1, %c0]",
     "arith.maximumf %$0, %$0 : vector<8xf32>\n"
     "%$2 = math.fma %$3, %$4, %$5 : vector<8xf32>\n"
     "vector.store %$6, %$7[%c1, %c0]"},
    {"NoRescalingOfAcc",
     "arith.mulf %*, %* : vector<8xf32> %* = math.fma %*, %*, %* : "
     "vector<8xf32> vector.store %*, %alloca*[%c*, %arg*]",
     "arith.maximumf %$0, %$0 : vector<8xf32>\n"
     "%$2 = math.fma %$3, %$4, %$5 : vector<8xf32>\n"
     "vector.store %$6, %$7[%$8, %$9]"},
    {"SinkInEverySplit", "arith.cmpi eq, %arg*, %c0 : index %* = memref.load",
     "arith.cmpi sge, %$0, %c0 : index\n%$1 = memref.load"},
    {"SinkInNoSplit", "arith.cmpi eq, %arg*, %c0 : index %* = memref.load",
     "arith.cmpi slt, %$0, %c0 : index\n%$1 = memref.load"},
    {"BeginOfSplit", "arith.minsi %*, %* : index %* = arith.addi %arg*, %c1",
     "arith.minsi %$0, %c0 : index\n%$2 = arith.addi %$3, %c1"},
    {"EndOfSplit", "arith.minsi %*, %* : index %* = arith.subi",
     "arith.maxsi %$0, %$1 : index\n%$2 = arith.subi"},
};

/// Faults in the partial results that several tasks leave for the merge.
const Fault kSplitKVMergeFaults[] = {
    {"FirstDropped",
     "scf.for %* = %c0 to %* step %c1 { %* = arith.muli %*, %c8 : index",
     "scf.for %$0 = %c1 to %$1 step %c1 {\n%$2 = arith.muli %$3, %c8 : index"},
    {"SameOffset", "arith.addi %*, %* : index %* = arith.muli %*, %c280",
     "arith.addi %$0, %c0 : index\n%$2 = arith.muli %$3, %c280"},
    {"OffsetOfAcc",
     "arith.addi %*, %c24 : index %* = arith.addi %*, %* : index %* = "
     "arith.addi %*, %* : index vector.store",
     "arith.addi %$0, %c8 : index\n%$1 = arith.addi %$2, %$3 : index\n%$4 = "
     "arith.addi %$5, %$6 : index\nvector.store"},
    {"MergedIsLast",
     "vector.load %alloca*[%c*, %arg*] : memref<4x64xf32>, "
     "vector<8xf32> %* = arith.mulf %*, %* : vector<8xf32> %* = math.fma %*, "
     "%*, %* : vector<8xf32>",
     "vector.load %$0[%$1, %$2] : memref<4x64xf32>, vector<8xf32>\n"
     "%$3 = arith.mulf %$4, %$5 : vector<8xf32>\n"
     "%$6 = arith.maximumf %$9, %$9 : vector<8xf32>"},
};

/// A prefill kernel with bf16 dot products.
AttentionCase getBF16DotsCase() {
  AttentionCase c;
  c.dtype = POSENC_BF16;
  c.causal = c.lengths = c.sinks = true;
  c.keyAngles = Angles::TokenIndices;
  return c;
}

const Fault kBF16DotsFaults[] = {
    {"Control", "", ""},
    {"SwappedQueries",
     "arith.shli %*, %* : vector<16xi32> %* = arith.ori %*, %* :",
     "arith.shli %$3, %$1 : vector<16xi32>\n%$2 = arith.ori %$0, %$4 :"},
    {"SwappedWeights",
     "arith.shrui %*, %* : vector<16xi32> %* = arith.ori %*, %* :",
     "arith.shrui %$4, %$1 : vector<16xi32>\n%$2 = arith.ori %$3, %$0 :"},
    {"OddValuesDropped",
     "arith.shli %*, %* : vector<16xi32> %* = vector.broadcast",
     "arith.shrui %$0, %$1 : vector<16xi32>\n%$2 = vector.broadcast"},
    {"OtherFactor", "avx512.dot %*, %*, %*", "avx512.dot %$0, %$1, %$1"},
    {"HalfOfTheSum",
     "arith.addf %arg*, %* : vector<16xf32> %* = arith.addf %*, %* :",
     "arith.addf %$0, %$1 : vector<16xf32>\n%$2 = arith.maximumf %$3, "
     "%$4 :"},
};

/// Faults that only NaNs and infinities in the inputs show, with bf16 dot
/// products.
const Fault kNonFiniteBF16DotsFaults[] = {
    {"Control", "", ""},
    {"NotChecked", "arith.cmpf uno", "arith.cmpf one"},
    {"NothingSkipped", "arith.cmpf oeq", "arith.cmpf one"},
};

/// Faults that only NaNs and infinities in keys and values show, in the prefill
/// kernel without bf16 dot products.
const Fault kNonFiniteFaults[] = {
    {"Control", "", ""},
    {"NotChecked", "arith.cmpf uno", "arith.cmpf one"},
    {"NothingSkipped",
     "arith.cmpf oeq, %*, %* : vector<8xf32> %* = arith.select %*, %arg*",
     "arith.cmpf one, %$0, %$1 : vector<8xf32>\n%$2 = arith.select %$3, %$4"},
};

/// Faults of the decode kernel that show where only some of the queries see a
/// NaN or an infinity.
const Fault kNonFiniteDecodeFaults[] = {
    {"Control", "", ""},
    {"NothingSkipped", "arith.cmpf oeq, %*, %cst* : vector<8xf32> %* = math",
     "arith.cmpf olt, %$0, %$1 : vector<8xf32>\n%$2 = math"},
};

bool isControl(const Fault &fault) { return fault.from[0] == '\0'; }

void check(const std::string &module, const AttentionData &data,
           bool isControl) {
  std::string error = data.check(Kernel(module).call("f", data.getInputs()));
  EXPECT_EQ(error.empty(), isControl) << error << "\n" << module;
}

/// The code of a case, into which faults are seeded, and its data.
struct Subject {
  std::string code;
  AttentionData data;

  Subject(
      const AttentionCase &c, AttentionSizes sizes, bool hasNonFinite = false,
      std::optional<mlir::posenc::Stage> stage = mlir::posenc::Stage::Vector,
      bool usesBF16Dots = false)
      : code(getModule(c)), data(c, sizes, /*seed=*/5) {
    // A fixed vector width gives the same text on every machine.
    if (stage)
      code = lowerToText(code, *stage, /*vectorBytes=*/usesBF16Dots ? 64 : 32,
                         usesBF16Dots);
    if (hasNonFinite)
      data.spoilSome(5);
  }
  void check(const Fault &fault) const {
    ::check(replace(code, fault), data, isControl(fault));
  }
};

class AttentionFaultTest : public testing::TestWithParam<Fault> {};
class AttentionLinalgFaultTest : public testing::TestWithParam<Fault> {};
class AttentionVectorFaultTest : public testing::TestWithParam<Fault> {};
class AttentionPagedFaultTest : public testing::TestWithParam<Fault> {};
class AttentionRaggedFaultTest : public testing::TestWithParam<Fault> {};
class AttentionRaggedDecodeFaultTest : public testing::TestWithParam<Fault> {};
class AttentionOneQueryFaultTest : public testing::TestWithParam<Fault> {};
class AttentionMultiTokenFaultTest : public testing::TestWithParam<Fault> {};
class AttentionScoreModFaultTest : public testing::TestWithParam<Fault> {};
class AttentionDynamicFaultTest : public testing::TestWithParam<Fault> {};
class AttentionNonFiniteDecodeFaultTest : public testing::TestWithParam<Fault> {
};
class AttentionSplitKVFaultTest : public testing::TestWithParam<Fault> {};
class AttentionSplitKVMergeFaultTest : public testing::TestWithParam<Fault> {};
class AttentionBF16DotsFaultTest : public testing::TestWithParam<Fault> {};
class AttentionNonFiniteBF16DotsFaultTest
    : public testing::TestWithParam<Fault> {};
class AttentionNonFiniteFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(AttentionFaultTest, IsCaught) {
  static const Subject subject(getCase(), {3, 37, 75}, /*hasNonFinite=*/false,
                               std::nullopt);
  subject.check(GetParam());
}
TEST_P(AttentionLinalgFaultTest, IsCaught) {
  static const Subject subject(getCase(), {3, 37, 75}, /*hasNonFinite=*/false,
                               mlir::posenc::Stage::Linalg);
  subject.check(GetParam());
}
TEST_P(AttentionVectorFaultTest, IsCaught) {
  static const Subject subject(getVectorCase(), {3, 40, 331});
  subject.check(GetParam());
}
TEST_P(AttentionPagedFaultTest, IsCaught) {
  static const Subject subject(getPagedCase(), {3, 40, 43});
  subject.check(GetParam());
}
TEST_P(AttentionRaggedFaultTest, IsCaught) {
  static const Subject subject(getRaggedCase(), {5, 150, 40});
  subject.check(GetParam());
}
TEST_P(AttentionRaggedDecodeFaultTest, IsCaught) {
  static const Subject subject(getRaggedDecodeCase(), {24, 3, 40});
  subject.check(GetParam());
}
TEST_P(AttentionOneQueryFaultTest, IsCaught) {
  static const Subject subject(getOneQueryCase(), {3, 1, 331});
  subject.check(GetParam());
}
TEST_P(AttentionMultiTokenFaultTest, IsCaught) {
  static const Subject subject(getMultiTokenCase(), {3, 3, 331});
  subject.check(GetParam());
}
TEST_P(AttentionScoreModFaultTest, IsCaught) {
  static Subject subject(getScoreModCase(), {3, 3, 331});
  static const size_t numSpoilt = subject.data.spoilUnseen(5);
  EXPECT_GT(numSpoilt, 0u);
  subject.check(GetParam());
}
TEST_P(AttentionDynamicFaultTest, IsCaught) {
  static const Subject subject(getDynamicCase(), {3, 3, 331});
  subject.check(GetParam());
}
TEST_P(AttentionNonFiniteDecodeFaultTest, IsCaught) {
  static const Subject subject(getMultiTokenCase(), {40, 3, 40},
                               /*hasNonFinite=*/true);
  subject.check(GetParam());
}
TEST_P(AttentionSplitKVFaultTest, IsCaught) {
  // The batch is too large for the buffer of partial results.
  static const Subject subject(getSplitKVCase(), {20, 1, 600});
  subject.check(GetParam());
}
TEST_P(AttentionSplitKVMergeFaultTest, IsCaught) {
  static const Subject subject(getSplitKVCase(), {2, 1, 1300});
  subject.check(GetParam());
}
TEST_P(AttentionBF16DotsFaultTest, IsCaught) {
  static const Subject subject(
      getBF16DotsCase(), {3, 40, 331}, /*hasNonFinite=*/false,
      mlir::posenc::Stage::Vector, /*usesBF16Dots=*/true);
  subject.check(GetParam());
}
TEST_P(AttentionNonFiniteBF16DotsFaultTest, IsCaught) {
  static const Subject subject(
      getBF16DotsCase(), {3, 40, 331}, /*hasNonFinite=*/true,
      mlir::posenc::Stage::Vector, /*usesBF16Dots=*/true);
  subject.check(GetParam());
}
TEST_P(AttentionNonFiniteFaultTest, IsCaught) {
  static const Subject subject(getVectorCase(), {3, 40, 331},
                               /*hasNonFinite=*/true);
  subject.check(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Source, AttentionFaultTest, testing::ValuesIn(kFaults),
                         getFaultName);
INSTANTIATE_TEST_SUITE_P(Linalg, AttentionLinalgFaultTest,
                         testing::ValuesIn(kLinalgFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Vectors, AttentionVectorFaultTest,
                         testing::ValuesIn(kVectorFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Pages, AttentionPagedFaultTest,
                         testing::ValuesIn(kPagedFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Ragged, AttentionRaggedFaultTest,
                         testing::ValuesIn(kRaggedFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Ragged, AttentionRaggedDecodeFaultTest,
                         testing::ValuesIn(kRaggedDecodeFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(OneQuery, AttentionOneQueryFaultTest,
                         testing::ValuesIn(kOneQueryFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(MultiToken, AttentionMultiTokenFaultTest,
                         testing::ValuesIn(kMultiTokenFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(ScoreMod, AttentionScoreModFaultTest,
                         testing::ValuesIn(kScoreModFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Dynamic, AttentionDynamicFaultTest,
                         testing::ValuesIn(kDynamicFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(MultiToken, AttentionNonFiniteDecodeFaultTest,
                         testing::ValuesIn(kNonFiniteDecodeFaults),
                         getFaultName);
INSTANTIATE_TEST_SUITE_P(OneTask, AttentionSplitKVFaultTest,
                         testing::ValuesIn(kSplitKVFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Splits, AttentionSplitKVMergeFaultTest,
                         testing::ValuesIn(kSplitKVFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(Merge, AttentionSplitKVMergeFaultTest,
                         testing::ValuesIn(kSplitKVMergeFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(BF16Dots, AttentionBF16DotsFaultTest,
                         testing::ValuesIn(kBF16DotsFaults), getFaultName);
INSTANTIATE_TEST_SUITE_P(BF16Dots, AttentionNonFiniteBF16DotsFaultTest,
                         testing::ValuesIn(kNonFiniteBF16DotsFaults),
                         getFaultName);
INSTANTIATE_TEST_SUITE_P(Prefill, AttentionNonFiniteFaultTest,
                         testing::ValuesIn(kNonFiniteFaults), getFaultName);

} // namespace
