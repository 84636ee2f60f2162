//===- WarpgroupBuilder.cpp - code for Hopper's tensor cores --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::posenc;

static char getConstraint(Type type) {
  if (type.isF32())
    return 'f';
  return type.isInteger(64) || isa<LLVM::LLVMPointerType>(type) ? 'l' : 'r';
}

SmallVector<Value> WarpgroupBuilder::assembly(const Twine &text,
                                              TypeRange results,
                                              ValueRange operands,
                                              int64_t ties) {
  SmallVector<std::string> constraints;
  for (Type type : results)
    constraints.push_back(std::string("=") + getConstraint(type));
  for (auto [number, operand] : llvm::enumerate(operands))
    constraints.push_back(
        static_cast<int64_t>(number) < ties
            ? std::to_string(number)
            : std::string(1, getConstraint(operand.getType())));
  Type result;
  if (results.size() == 1)
    result = results.front();
  else if (!results.empty())
    result = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                              llvm::to_vector(results));
  auto op = LLVM::InlineAsmOp::create(
      b, result ? TypeRange(result) : TypeRange(), operands, text.str(),
      llvm::join(constraints, ","), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  if (results.size() <= 1)
    return SmallVector<Value>(op->getResults());
  SmallVector<Value> values;
  for (int64_t i = 0, e = results.size(); i < e; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, op->getResult(0), i));
  return values;
}

//===----------------------------------------------------------------------===//
// Barriers and copies
//===----------------------------------------------------------------------===//

void WarpgroupBuilder::initBarrier(Value barrier, int64_t count) {
  assembly("mbarrier.init.shared.b64 [$0], $1;", {}, {barrier, b.i32(count)});
}

void WarpgroupBuilder::publishBarriers() {
  assembly("fence.mbarrier_init.release.cluster;", {}, {});
}

void WarpgroupBuilder::waitFor(Value barrier, Value phase) {
  // The lanes of a warp may return from try_wait at different times.
  assembly("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared.b64 P1, "
           "[$0], $1; @P1 bra DONE; bra LAB_WAIT; DONE: }",
           {}, {barrier, phase});
}

void WarpgroupBuilder::arrive(Value barrier, Value isArriving) {
  Value flag = arith::ExtUIOp::create(b, b.getI32Type(), isArriving);
  assembly("{ .reg .pred P2; setp.ne.b32 P2, $1, 0; @P2 "
           "mbarrier.arrive.shared.b64 _, [$0]; }",
           {}, {barrier, flag});
}

void WarpgroupBuilder::expectBytes(Value barrier, int64_t bytes) {
  assembly("mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1;", {},
           {barrier, b.i32(bytes)});
}

void WarpgroupBuilder::syncThreads(Value number, int64_t threads) {
  assembly("bar.sync $0, " + Twine(threads) + ";", {}, {number});
}

Value WarpgroupBuilder::anyThread(Value number, int64_t threads,
                                  Value condition) {
  Type i32 = b.getI32Type();
  Value flag = arith::ExtUIOp::create(b, i32, condition);
  Value any = assembly("{ .reg .pred P3; setp.ne.b32 P3, $2, 0; "
                       "bar.red.or.pred P3, $1, " +
                           Twine(threads) + ", P3; selp.b32 $0, 1, 0, P3; }",
                       i32, {number, flag})[0];
  return b.compare(arith::CmpIPredicate::ne, any, b.i32(0));
}

void WarpgroupBuilder::fenceAsyncProxy() {
  assembly("fence.proxy.async.shared::cta;", {}, {});
}

void WarpgroupBuilder::setRegisters(int64_t count, bool raises) {
  // The documentation of setmaxnreg asks for .minnctapersm or .maxnreg. With
  // either, ptxas 13.0 and 13.5 spill in causal attention. With .maxntid alone,
  // the registers of a launch are those of the pool, too, as tests check.
  assembly(Twine("setmaxnreg.") + (raises ? "inc" : "dec") +
               ".sync.aligned.u32 " + Twine(count) + ";",
           {}, {});
}

void WarpgroupBuilder::loadTile(Value to, Value map, ValueRange coordinates,
                                Value barrier) {
  SmallVector<Value> operands{to, map};
  llvm::append_range(operands, coordinates);
  operands.push_back(barrier);
  SmallVector<std::string> names;
  for (size_t i = 0; i < coordinates.size(); ++i)
    names.push_back("$" + std::to_string(i + 2));
  assembly("cp.async.bulk.tensor." + Twine(coordinates.size()) +
               "d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], "
               "[$1, {" +
               llvm::join(names, ", ") + "}], [$" +
               Twine(coordinates.size() + 2) + "];",
           {}, operands);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value WarpgroupBuilder::describe(Value address, int64_t leading) {
  // Eight rows of 128 bytes are a unit of the swizzle, the first of its modes.
  constexpr int64_t kUnit = 1024, kSwizzle128 = int64_t{1} << 62;
  int64_t constant = (leading >> 4) << 16 | (kUnit >> 4) << 32 | kSwizzle128;
  Value start = arith::AndIOp::create(b, address, b.i32(0x3FFFF));
  start = arith::ShRUIOp::create(b, start, b.i32(4));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), start);
  return arith::OrIOp::create(b, wide,
                              arith::ConstantIntOp::create(b, constant, 64));
}

Value WarpgroupBuilder::advance(Value descriptor, int64_t bytes) {
  return b.add(descriptor, bytes >> 4);
}

void WarpgroupBuilder::beginProducts() {
  assembly("wgmma.fence.sync.aligned;", {}, {});
}

void WarpgroupBuilder::endProducts() {
  assembly("wgmma.commit_group.sync.aligned;", {}, {});
}

void WarpgroupBuilder::waitForProducts(int64_t pending) {
  assembly("wgmma.wait_group.sync.aligned " + Twine(pending) + ";", {}, {});
}

Value WarpgroupBuilder::readThread() {
  return assembly("mov.u32 $0, %tid.x;", b.getI32Type(), {}).front();
}

SmallVector<Value> WarpgroupBuilder::tie(ValueRange values) {
  return assembly("", values.getTypes(), values, values.size());
}

/// Returns the instruction without its operands.
static std::string getProductName(int64_t columns, Type element) {
  StringRef type = element.isBF16() ? "bf16" : "f16";
  return llvm::formatv("wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1}",
                       columns, type)
      .str();
}

/// Returns "{$0, $1, ...}" of `count` operands from `first` on.
static std::string getOperands(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

SmallVector<Value> WarpgroupBuilder::multiply(int64_t columns, Value a,
                                              Value other, ValueRange sum,
                                              Type element) {
  int64_t count = columns / 2, next = count + sum.size();
  SmallVector<Type> types(count, b.getF32Type());
  SmallVector<Value> operands(sum);
  llvm::append_values(operands, a, other);
  std::string text =
      llvm::formatv("{0} {1}, ${2}, ${3}, {4}, 1, 1, 0, 0;",
                    getProductName(columns, element), getOperands(0, count),
                    next, next + 1, sum.empty() ? 0 : 1)
          .str();
  return assembly(text, types, operands, sum.size());
}

SmallVector<Value>
WarpgroupBuilder::multiplyRegisters(int64_t columns, ValueRange a, Value other,
                                    ValueRange sum, Type element) {
  int64_t count = columns / 2, next = 2 * count;
  SmallVector<Type> types(count, b.getF32Type());
  SmallVector<Value> operands(sum);
  llvm::append_range(operands, a);
  operands.push_back(other);
  std::string text =
      llvm::formatv("{0} {1}, {2}, ${3}, 1, 1, 1, 1;",
                    getProductName(columns, element), getOperands(0, count),
                    getOperands(next, 4), next + 4)
          .str();
  return assembly(text, types, operands, sum.size());
}
