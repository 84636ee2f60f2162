//===- ParserTest.cpp - the parser of the PTX interpreter -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

using namespace posenc;
using namespace posenc::test;

namespace {

void expectError(const std::string &text, const std::string &message) {
  std::string error = getError(text);
  EXPECT_NE(error.find(message), std::string::npos)
      << "found '" << error << "', expected '" << message << "'";
}

const std::string header = ".version 8.0\n.target sm_90, debug\n"
                           ".address_size 64\n";

} // namespace

TEST(PtxParser, ModuleDirectives) {
  EXPECT_EQ(getError("// comment\n/* another\n */" + header +
                     ".file 1 \"a.mlir\"\n"
                     ".extern .func  (.param .b32 r) f (.param .b32 p)\n;\n"
                     ".visible .entry k(\n"
                     "\t.param .u64 .ptr .global .align 1 a,\n"
                     "\t.param .align 64 .b8 b[128])\n"
                     ".maxntid 64, 1, 1\n.minnctapersm 2\n.maxnreg 80\n{\n"
                     "\t.reg .b32 \t%r<3>, %x;\n"
                     "\t.loc 1 2 3, function_name $L__info0, inlined_at 1 2 3\n"
                     "\t.pragma \"nounroll\";\n$L__BB0_1:  // %loop\n"
                     "\tmov.b32 %x, 0f3F800000;\n\tret;\n}\n"
                     ".section .debug_abbrev\n{\n.b8 1\n}\n"),
            "");
  // The source ends at its first NUL, as in the CUDA driver.
  EXPECT_EQ(getError(header + std::string(1, '\0') + "rubbish"), "");
}

TEST(PtxParser, Errors) {
  expectError("", "line 1: expected PTX");
  expectError(".version 8.0\n", "expected a .target");
  expectError(".version 8.0\n.target sm_90\n.address_size 32\n",
              "expected .address_size 64");
  expectError(header + ".visible .entry k()\n{\n.reg .b32 %r<2>;\nfoo.b32 %r0;"
                       "\n}\n",
              "line 7: unknown instruction 'foo'");
  expectError(header + ".visible .entry k()\n{\nret\n}\n", "expected");
  expectError(header + ".visible .entry k()\n{\n", "expected");
  expectError(header + ".visible .entry k() .maxfoo 3 {\n}\n",
              "unknown directive '.maxfoo'");
  expectError(header + ".visible .entry k() {\n/* \n", "unterminated comment");
  expectError(header + ".visible .entry k() {\n\"a\n", "unterminated string");
  expectError(header + ".visible .entry k() {\n#\n", "unexpected character");
  expectError(header + ".global .b32 a = 0f12;\n", "not a number");
  expectError(header + ".global .b32 a = 1.5;\n", "not a number");
  expectError(header + ".global .b32 a[1] = {1, 2};\n", "more initializers");
  expectError(header + ".global .align 3 .b32 a;\n", "power of 2");
  expectError(header + ".global .b32 a;\n.global .b32 a;\n", "twice");
  expectError(header + ".global .u64 a = b;\n", "unknown name 'b'");
  expectError(header + ".shared .u32 a = 1;\n", "cannot have an initializer");
  expectError(header + ".extern .global .b32 a;\n", "another module");
  expectError(header + ".tex .u64 a;\n", "unknown declaration '.tex'");
  expectError(header + ".entry k() {\n}\n.entry k() {\n}\n", "defined twice");
}

TEST(PtxParser, Names) {
  auto expect = [](const std::string &instruction, const std::string &message) {
    std::string error = getInstructionError(instruction);
    EXPECT_NE(error.find(message), std::string::npos) << error;
    EXPECT_NE(error.find("line 12:"), std::string::npos) << error;
  };
  expect("mov.b32 %r99, 1;", "unknown register '%r99'");
  expect("mov.b32 %r1, %q1;", "unknown name '%q1'");
  expect("mov.b32 %r1, %clock;", "unknown name '%clock'");
  expect("bra $NOWHERE;", "unknown label '$NOWHERE'");
  expect("call nobody;", "unknown function 'nobody'");
  expect("call k;", "no body to call");
  expect("@%r1 mov.b32 %r1, 1;", "expected a predicate as the guard");
  expect("mov.b32 %p1, 1;", "is a predicate");
  expect("ld.global.b32 %r1, [nothing];", "unknown name 'nothing'");
  expect("ld.global.v2.b32 {%r1}, [%d0];", "number of registers");
  expect("ld.global.b32 %r1, %d0;", "in brackets");
  expect("ld.global.b64 %r1, [%d0];", "4 bytes");
  expect("st.global.foo.b32 [%d0], %r1;", "'.foo'");
  expect("tcgen05.mma [%r1], %r2;", "unknown instruction 'tcgen05'");
}

TEST(PtxParser, DuplicateLabels) {
  expectError(makeModule("", "$A: $A:"), "is defined twice");
  expectError(makeModule("", ".reg .b32 %r<4>;"), "declared twice");
}
