//===- MaskFoldProofs.cpp - conditions that become windows ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// posenc-fold-masks is run on conditions of every predicate and of many affine
// functions of query and key. Claimed is that the masks before and after, by
// attributes and by region, let the same pairs through.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

namespace {
/// A number of a region: its operations, which end with the value `%`, followed
/// by the name of the side, and its type.
struct Side {
  std::string text;
  bool isNarrow = false;
};
} // namespace

/// Returns functions of the query %i and the key %j. `$` is the name.
static std::vector<Side> getSides(const Report &report) {
  std::vector<Side> sides;
  auto add = [&](const std::string &text, bool isNarrow = false) {
    sides.push_back({text, isNarrow});
  };
  std::vector<int64_t> constants{
      0, 1, 5, -1, -4, (int64_t{1} << 56) + 1, -(int64_t{1} << 57)};
  if (report.options.isQuick)
    constants = {5, -1};
  std::string relative = "%d$ = arith.subi %i, %j : index\n";
  add("%c$ = arith.constant 0 : index\n%$ = arith.addi %i, %c$ : index\n");
  add("%c$ = arith.constant 0 : index\n%$ = arith.addi %j, %c$ : index\n");
  add("%$ = arith.subi %i, %j : index\n");
  add("%$ = arith.subi %j, %i : index\n");
  add(relative + "%$ = math.absi %d$ : index\n");
  for (int64_t constant : constants) {
    std::string number =
        llvm::formatv("%c$ = arith.constant {0} : index\n", constant);
    add(llvm::formatv("%$ = arith.constant {0} : index\n", constant));
    add(number + "%$ = arith.addi %i, %c$ : index\n");
    add(number + relative + "%$ = arith.subi %d$, %c$ : index\n");
    if (!report.options.isQuick)
      add(number + "%$ = arith.subi %c$, %j : index\n");
  }
  add("%c$ = arith.constant 3 : index\n%$ = arith.muli %i, %c$ : index\n");
  add("%c$ = arith.constant -1 : index\n" + relative +
      "%$ = arith.muli %d$, %c$ : index\n");
  // Narrow integers, where positions fit in 32 bits.
  for (const char *cast : {"index_cast", "index_castui"}) {
    add(llvm::formatv("%$ = arith.{0} %i : index to i32\n", cast), true);
    add(llvm::formatv("%$ = arith.{0} %j : index to i32\n", cast), true);
  }
  add(relative + "%$ = arith.index_cast %d$ : index to i32\n", true);
  add("%$ = arith.constant 3 : i32\n", true);
  add(relative + "%e$ = arith.index_cast %d$ : index to i64\n"
                 "%$ = arith.trunci %e$ : i64 to i32\n",
      true);
  std::string back = "%n$ = arith.index_cast %j : index to i32\n";
  for (const char *cast : {"extsi", "extui"})
    add(back + llvm::formatv("%w$ = arith.{0} %n$ : i32 to i64\n"
                             "%v$ = arith.index_cast %w$ : i64 to index\n"
                             "%$ = arith.subi %v$, %i : index\n",
                             cast)
                   .str());
  return sides;
}

static std::string rename(std::string text, const std::string &name) {
  std::string renamed;
  for (char c : text)
    renamed += c == '$' ? name : std::string(1, c);
  return renamed;
}

static std::string getModule(const std::string &masks,
                             const std::string &region) {
  return "func.func @f(%x: tensor<1x?x2x8xf32>) -> tensor<1x?x2x8xf32> {\n"
         "%r = posenc.attention " +
         masks +
         "ins(%x, %x, %x : tensor<1x?x2x8xf32>, tensor<1x?x2x8xf32>, "
         "tensor<1x?x2x8xf32>) outs(%x : tensor<1x?x2x8xf32>) "
         "where(%b, %h, %i, %j) {\n" +
         region +
         "posenc.yield %y : i1\n}\nreturn %r : tensor<1x?x2x8xf32>\n}\n";
}

/// Whether the masks by position let query `i` see key `j`.
static Term isInWindow(AttentionOp op, const Term &i, const Term &j) {
  std::vector<Term> conditions;
  if (op.getCausal())
    conditions.push_back(atMost(j, i));
  if (op.getWindowLeft())
    conditions.push_back(atMost(minus(i, j), number(*op.getWindowLeft())));
  if (op.getWindowRight())
    conditions.push_back(atMost(minus(j, i), number(*op.getWindowRight())));
  return all(conditions);
}

/// Claims that a region means the same after the pass, for the rules `rule` and
/// those of its operations. Returns whether the pass changed it.
static bool proveFold(MLIRContext &context, Report &report,
                      const std::string &rule, const std::string &masks,
                      const std::string &region,
                      std::map<std::string, int> &numOfOperation) {
  std::string text = getModule(masks, region);
  OwningOpRef<ModuleOp> before = parse(context, text),
                        after = parse(context, text);
  PassManager passes(&context);
  if (failed(parsePassPipeline("posenc-fold-masks", passes)) ||
      failed(passes.run(*after))) {
    report.check(rule, false, [&] { return "fails in\n" + text; });
    return false;
  }
  AttentionOp from, to;
  before->walk([&](AttentionOp op) { from = op; });
  after->walk([&](AttentionOp op) { to = op; });
  if (from->getAttrDictionary() == to->getAttrDictionary() &&
      !to.getWhere().empty() &&
      llvm::range_size(from.getWhere().front()) ==
          llvm::range_size(to.getWhere().front()))
    return false;
  Encoder encoder;
  bool isNarrow = text.find("i32") != std::string::npos;
  Term limit = number(int64_t{1} << (isNarrow ? 31 : 56));
  Term i = encoder.declareInteger("i"), j = encoder.declareInteger("j");
  encoder.assume(call("<", {"(- 1)", j, limit}));
  for (const Term &x : {i, minus(i, j)})
    encoder.assume(call("<", {call("-", {limit}), x, limit}));
  auto getMask = [&](AttentionOp op) -> Term {
    Term seen = isInWindow(op, i, j);
    if (op.getWhere().empty())
      return seen;
    Block &block = op.getWhere().front();
    encoder.bind(block.getArgument(2), i);
    encoder.bind(block.getArgument(3), j);
    return all(
        {seen, encoder.get(cast<YieldOp>(block.getTerminator()).getValue())});
  };
  Term was = getMask(from);
  Term is;
  switch (report.options.fault) {
  case Fault::None:
  case Fault::Premises:
    is = getMask(to);
    break;
  case Fault::OffByOne:
    is = isInWindow(to, i, plus(j, "1"));
    break;
  case Fault::MinMax:
    is = isInWindow(to, j, i);
    break;
  case Fault::Check:
    is = "true";
    break;
  }
  Claim claim =
      mlir::posenc::proofs::claim(rule, encoder, call("=", {was, is}));
  report.add(claim);
  // Each operation has a few of the claims.
  from.getWhere().walk([&](Operation *op) {
    std::string name = op->getName().getStringRef().str();
    if (isa<arith::CmpIOp, arith::ConstantOp, YieldOp>(op) ||
        numOfOperation[name]++ >= 3)
      return;
    Claim same = claim;
    same.rule = name;
    report.add(same);
  });
  return true;
}

void mlir::posenc::proofs::proveMaskFolds(MLIRContext &context,
                                          Report &report) {
  context.loadDialect<math::MathDialect>();
  StringRef path = "lib/Transforms/FoldMasks.cpp";
  requireOperations(context, report, path, "AffineValues::compute(",
                    "// Conditions\n");
  requireOperations(context, report, path, "getWindowOfOrder(",
                    "/// Returns the window that a condition");
  requireOperations(context, report, path, "getConditions(Value conjunction)",
                    "// Pass\n");
  std::map<std::string, int> numOfOperation;
  std::vector<Side> sides = getSides(report);
  for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i) {
    std::string predicate =
        arith::stringifyCmpIPredicate(static_cast<arith::CmpIPredicate>(i))
            .str();
    // Inequality is no window: it is folded only where it always holds.
    if (predicate != "ne")
      report.require("where " + predicate);
    for (const Side &left : sides)
      for (const Side &right : sides) {
        if (left.isNarrow != right.isNarrow)
          continue;
        std::string type = left.isNarrow ? "i32" : "index";
        proveFold(context, report, "where " + predicate, "",
                  rename(left.text, "l") + rename(right.text, "r") +
                      "%y = arith.cmpi " + predicate + ", %l, %r : " + type +
                      "\n",
                  numOfOperation);
      }
  }
  // Conjunctions, with masks that are there before.
  std::string two = "%c = arith.constant 4 : index\n"
                    "%d = arith.subi %i, %j : index\n"
                    "%p = arith.cmpi sle, %j, %i : index\n"
                    "%q = arith.cmpi slt, %d, %c : index\n"
                    "%f = arith.constant false\n";
  for (const char *masks :
       {"", "causal ", "window_left = 2 ", "window_left = 9 ",
        "window_right = 0 ", "window_left = 1 window_right = 7 "})
    for (const char *both : {"%y = arith.andi %p, %q : i1\n",
                             "%y = arith.select %p, %q, %f : i1\n"})
      proveFold(context, report, "where of conditions", masks, two + both,
                numOfOperation);
}
