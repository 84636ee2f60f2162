//===- VisibleKeyProofs.cpp - which keys a query sees ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A query at position p sees key k < numKeys if k <= p where the attention is
// causal, p - k <= window_left, k - p <= window_right, and `where` is true; the
// last query stands at the last key. Proved are what PositionMask emits, and
// the loops of posenc-decompose-attention as a whole: whatever tiles are
// skipped, partial or full, a pair is counted if and only if the query sees the
// key.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/AttentionIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"

#include <regex>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

/// Whether the masks by position of an operation let position `p` see key `k`.
template <typename OpTy>
static Term isKeyVisible(OpTy op, const Term &p, const Term &k) {
  std::vector<Term> conditions;
  if (op.getCausal())
    conditions.push_back(atMost(k, p));
  if (std::optional<uint64_t> left = op.getWindowLeft())
    conditions.push_back(atMost(minus(p, k), number(*left)));
  if (std::optional<uint64_t> right = op.getWindowRight())
    conditions.push_back(atMost(minus(k, p), number(*right)));
  return all(conditions);
}

/// Whether the region `where` of an operation is true for a pair.
template <typename OpTy>
static Term isAllowed(Encoder &encoder, OpTy op, ArrayRef<Term> pair) {
  if (op.getWhere().empty())
    return "true";
  Block &block = op.getWhere().front();
  encoder.push();
  for (auto [argument, term] : llvm::zip_equal(block.getArguments(), pair))
    encoder.bind(argument, term);
  Term allowed = encoder.get(cast<YieldOp>(block.getTerminator()).getValue());
  encoder.pop();
  return allowed;
}

/// Returns spellings of the masks by position.
static std::vector<std::string> getMasks(const Report &report) {
  std::vector<std::string> sizes{"",
                                 "0",
                                 "1",
                                 "5",
                                 "1099511627775",
                                 "1099511627776",
                                 "4611686018427387904"};
  if (report.options.isQuick)
    sizes = {"", "5", "1099511627776"};
  std::vector<std::string> masks;
  for (const char *causal : {"", "causal "})
    for (const std::string &left : sizes)
      for (const std::string &right : sizes) {
        std::string mask = causal;
        if (!left.empty())
          mask += "window_left = " + left + " ";
        if (!right.empty())
          mask += "window_right = " + right + " ";
        masks.push_back(mask);
      }
  return masks;
}

//===----------------------------------------------------------------------===//
// PositionMask
//===----------------------------------------------------------------------===//

namespace {
/// Code for masks of an attention, with any positions and keys.
struct MaskCase {
  MaskCase(MLIRContext &context, Report &report, const std::string &mask)
      : report(report), b(UnknownLoc::get(&context), &context) {
    module = parse(context,
                   R"(
!x = tensor<1x?x2x8xf32>
func.func @f(%x: !x, %fq: index, %lq: index, %fk: index, %lk: index,
             %n: index) {
  %r = posenc.attention )" +
                       mask +
                       R"(ins(%x, %x, %x : !x, !x, !x) outs(%x : !x)
  return
})");
    module->walk([&](AttentionOp attention) { op = attention; });
    auto function = *module->getOps<func::FuncOp>().begin();
    b.setInsertionPointAfter(op);
    for (unsigned i = 1; i < 6; ++i) {
      arguments.push_back(function.getArgument(i));
      terms.push_back(encoder.declare(b.getIndexType(), "at"));
      encoder.bind(arguments.back(), terms.back());
    }
    // Relative positions are less than 2^40, and keys are not negative.
    Term limit = number(int64_t{1} << 40);
    encoder.assume(call("<=", {"0", terms[2], terms[3]}));
    encoder.assume(atMost(terms[0], terms[1]));
    encoder.assume(between("0", terms[4], limit));
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned j = 0; j < i; ++j)
        encoder.assume(call("and", {less(minus(terms[i], terms[j]), limit),
                                    less(minus(terms[j], terms[i]), limit)}));
    encoder.assume(less(terms[3], limit));
  }
  PositionTile getTile() {
    return {arguments[0], arguments[1], arguments[2], arguments[3]};
  }
  Term getFaulty(Value value, const Term &ifNull) {
    if (!value)
      return ifNull;
    encoder.fault = report.options.fault;
    Term term = encoder.get(value);
    encoder.fault = Fault::None;
    return term;
  }
  void claim(const std::string &rule, const Term &condition) {
    report.add(mlir::posenc::proofs::claim(rule, encoder, condition));
  }

  Report &report;
  ImplicitLocOpBuilder b;
  OwningOpRef<ModuleOp> module;
  AttentionOp op;
  Encoder encoder;
  /// First and last query, first and last key, number of keys.
  std::vector<Value> arguments;
  std::vector<Term> terms;
};
} // namespace

static void proveMasks(MLIRContext &context, Report &report) {
  for (const std::string &mask : getMasks(report)) {
    // The keys of one position are a range, with every key in it.
    {
      MaskCase one(context, report, mask);
      PositionMask emitted(one.op);
      const Term &p = one.terms[0], &k = one.terms[2], &n = one.terms[4];
      Term first =
          one.getFaulty(emitted.emitFirstKey(one.b, one.arguments[0]), "0");
      Term end = one.getFaulty(
          emitted.emitEndKey(one.b, one.arguments[0], one.arguments[4]), n);
      Term sees = all({less(k, n), isKeyVisible(one.op, p, k)});
      one.claim("emitFirstKey", implies(sees, atMost(first, k)));
      one.claim("emitEndKey",
                call("=", {sees, all({atMost(first, k), less(k, end)})}));
    }
    for (bool hasEnd : {true, false}) {
      MaskCase one(context, report, mask);
      ElementwiseBuilder elements(one.b, one.b.getLoc(), one.b.getIndexType());
      auto getKey = [&](int64_t offset) -> Value {
        return arith::AddIOp::create(
            one.b, one.arguments[0],
            arith::ConstantIndexOp::create(one.b, offset));
      };
      VisibleKeys keys = PositionMask(one.op).emitVisibleKeys(
          elements, getKey, hasEnd ? one.arguments[4] : Value());
      Term isVisible = one.getFaulty(
          emitIsVisible(elements, one.arguments[2], keys), "true");
      Term sees = isKeyVisible(one.op, one.terms[0], one.terms[2]);
      if (hasEnd)
        sees = all({sees, less(one.terms[2], one.terms[4])});
      Term isRight = call("=", {isVisible, sees});
      one.claim("emitVisibleKeys", isRight);
      one.claim("emitIsVisible", isRight);
    }
    // A tile, and a pair in it.
    for (bool isPair : {false, true}) {
      MaskCase one(context, report, mask);
      PositionMask emitted(one.op);
      Term p = one.encoder.declareInteger("p"),
           k = one.encoder.declareInteger("k");
      one.encoder.assume(between(one.terms[0], p, one.terms[1]));
      one.encoder.assume(between(one.terms[2], k, one.terms[3]));
      Term sees = isKeyVisible(one.op, p, k);
      Term visible =
          one.getFaulty(emitted.emitIsAnyVisible(one.b, one.getTile()), "true");
      Term partial =
          one.getFaulty(emitted.emitIsPartial(one.b, one.getTile()), "false");
      if (isPair) {
        one.encoder.assume(call("=", {one.terms[0], one.terms[1]}));
        one.encoder.assume(call("=", {one.terms[2], one.terms[3]}));
        one.claim("emitIsAnyVisible", call("=", {visible, sees}));
        one.claim("emitIsPartial", call("=", {negate(partial), sees}));
        continue;
      }
      one.claim("emitIsAnyVisible", implies(sees, visible));
      one.claim("emitIsPartial", implies(negate(partial), sees));
    }
  }
}

//===----------------------------------------------------------------------===//
// Loops over tiles
//===----------------------------------------------------------------------===//

namespace {
/// The loops of one attention.
class Nest {
public:
  Nest(MLIRContext &context, Report &report, const std::string &attention,
       const std::string &options, bool isRunning)
      : report(report), isRunning(isRunning), before(parse(context, attention)),
        after(parse(context, attention)) {
    before->walk([&](AttentionOp op) { source = op; });
    PassManager passes(&context);
    if (failed(parsePassPipeline("posenc-decompose-attention{" + options + "}",
                                 passes)) ||
        failed(passes.run(*after)))
      return;
    after->walk([&](OnlineAttentionOp op) { tiles.push_back(op); });
    // Both functions have the same arguments.
    auto function = *before->getOps<func::FuncOp>().begin();
    auto loops = *after->getOps<func::FuncOp>().begin();
    for (auto [a, c] :
         llvm::zip_equal(function.getArguments(), loops.getArguments())) {
      if (!a.getType().isIntOrIndex())
        continue;
      Term term = encoder.declare(a.getType(), "scalar");
      encoder.bind(a, term);
      encoder.bind(c, term);
    }
  }
  /// Proves which pairs are counted, in an iteration of the loops.
  void provePairs();
  /// Proves that a query has an iteration of the loops over queries, whose
  /// blocks have so many tiles.
  void proveQueries(int64_t tilesOfBlock);

private:
  Term get(Value value) {
    encoder.fault = report.options.fault;
    Term term = encoder.get(value);
    encoder.fault = Fault::None;
    return term;
  }
  Term get(OpFoldResult value) {
    return isa<Value>(value) ? get(cast<Value>(value)) : encoder.get(value);
  }
  Term getSize(unsigned argument, int64_t dim);
  void bindLoops();
  void findSequence();
  void claim(const std::string &rule, const Term &condition) {
    report.add(mlir::posenc::proofs::claim(rule, encoder, condition));
  }

  Report &report;
  /// Whether variables of loops are those of an iteration. Others are any.
  bool isRunning;
  OwningOpRef<ModuleOp> before, after;
  AttentionOp source;
  SmallVector<OnlineAttentionOp> tiles;
  Encoder encoder;

  Term sequence, endOfSequences, headTask, endOfHeads, numQueries, numKeys,
      queryBlock, endOfBlocks, firstKey, beginOfKeys, endOfKeys, stepOfKeys;
  /// The number of a tile within the block, and the end of these numbers.
  Term tile = "0", endOfTiles = "1";
};
} // namespace

Term Nest::getSize(unsigned argument, int64_t dim) {
  auto function = *after->getOps<func::FuncOp>().begin();
  OpBuilder b(function.getBody());
  Value number = arith::ConstantIndexOp::create(b, function.getLoc(), dim);
  return encoder.get(tensor::DimOp::create(
      b, function.getLoc(), function.getArgument(argument), number));
}

/// Gives induction variables any value that they have in an execution.
void Nest::bindLoops() {
  SmallVector<Operation *> parents;
  for (Operation *parent = tiles.front()->getParentOp();
       !isa<func::FuncOp>(parent); parent = parent->getParentOp())
    parents.push_back(parent);
  for (Operation *parent : llvm::reverse(parents)) {
    if (auto all = dyn_cast<scf::ForallOp>(parent)) {
      for (auto [number, variable] : llvm::enumerate(all.getInductionVars())) {
        Term term = encoder.declareInteger("task");
        Term end = get(all.getMixedUpperBound()[number]);
        report.check("loops count from 0 by 1",
                     all.getStaticLowerBound()[number] == 0 &&
                         all.getStaticStep()[number] == 1,
                     [] { return "not in a loop over tiles"; });
        if (isRunning || number == 0)
          encoder.assume(between("0", term, minus(end, "1")));
        encoder.bind(variable, term);
        if (number == 0) {
          sequence = term;
          endOfSequences = end;
        }
        if (number == 1) {
          headTask = term;
          endOfHeads = end;
        }
        if (number == 2) {
          queryBlock = term;
          endOfBlocks = end;
        }
      }
    }
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      continue;
    bool isOfKeys = tiles.front().getKeyIndex() == loop.getInductionVar();
    if (isOfKeys && !isRunning)
      continue;
    Term low = get(loop.getLowerBound()), high = get(loop.getUpperBound()),
         step = get(loop.getStep()), round = encoder.declareInteger("round");
    Term at = encoder.define(plus(low, call("*", {step, round})),
                             /*isBool=*/false);
    encoder.assume(atMost("0", round));
    if (isRunning)
      encoder.assume(less(at, high));
    encoder.bind(loop.getInductionVar(), at);
    if (isOfKeys) {
      firstKey = at;
      beginOfKeys = low;
      endOfKeys = high;
      stepOfKeys = step;
    } else {
      tile = at;
      endOfTiles = high;
    }
  }
}

/// Finds the sizes of the sequence, as its meaning says. Lists of ragged
/// sequences ascend.
void Nest::findSequence() {
  auto getStart = [&](unsigned list, const Term &number) {
    auto function = *after->getOps<func::FuncOp>().begin();
    return encoder.getElement(function.getArgument(list), {number});
  };
  auto getLength = [&](unsigned list, unsigned tensor) {
    Term start = getStart(list, sequence),
         end = getStart(list, plus(sequence, "1"));
    encoder.assume(call("<=", {"0", start, end, getSize(tensor, 0)}));
    return minus(end, start);
  };
  if (source.hasRaggedQueries()) {
    // The tokens after the last sequence have no keys. Both lists have as many
    // sequences.
    encoder.assume(call("=", {getSize(3, 0), getSize(4, 0)}));
    encoder.assume(less(sequence, minus(getSize(3, 0), "1")));
    numQueries = getLength(3, 0);
    numKeys = getLength(4, 1);
  } else {
    numQueries = getSize(0, 1);
    numKeys = getSize(1, 1);
    if (source.getLengths()) {
      Term length = getStart(3, sequence);
      numKeys = call("ite", {less(length, numKeys), length, numKeys});
      numKeys = call("ite", {less(numKeys, "0"), "0", numKeys});
    }
  }
  numQueries = encoder.define(numQueries, /*isBool=*/false);
  numKeys = encoder.define(numKeys, /*isBool=*/false);
}

void Nest::proveQueries(int64_t tilesOfBlock) {
  for (const char *rule : {"loops reach each query", "loops reach each head",
                           "loops reach each sequence"})
    report.require(rule);
  if (tiles.empty())
    return;
  bindLoops();
  findSequence();
  int64_t rows =
      cast<RankedTensorType>(tiles.front().getQuery().getType()).getDimSize(1);
  Term query = encoder.declareInteger("query"), size = number(rows);
  encoder.assume(between("0", query, minus(numQueries, "1")));
  encoder.assume(call(
      "=", {queryBlock, call("div", {query, number(rows * tilesOfBlock)})}));
  encoder.assume(call("=", {tile, call("mod", {call("div", {query, size}),
                                               number(tilesOfBlock)})}));
  Term position =
      plus(get(tiles.front().getQueryIndex()), call("mod", {query, size}));
  // Ragged sequences are one less than their starts. Tokens behind the last one
  // may have an iteration of their own.
  Term numSequences =
      source.hasRaggedQueries() ? minus(getSize(3, 0), "1") : getSize(0, 0);
  claim("loops reach each sequence",
        source.hasRaggedQueries() ? atMost(numSequences, endOfSequences)
                                  : call("=", {numSequences, endOfSequences}));
  auto type = cast<RankedTensorType>(source.getQuery().getType());
  Term heads = number(type.getDimSize(type.getRank() - 2)),
       headsOfTile =
           number(cast<RankedTensorType>(tiles.front().getQuery().getType())
                      .getDimSize(0)),
       head = encoder.declareInteger("head");
  claim("loops reach each head",
        all({implies(between("0", head, minus(heads, "1")),
                     less(call("div", {head, headsOfTile}), endOfHeads)),
             call("=", {get(tiles.front().getHeadIndex()),
                        call("*", {headTask, headsOfTile})})}));
  claim("loops reach each query",
        all({less(queryBlock, endOfBlocks), less(tile, endOfTiles),
             call("=", {position, plus(query, minus(numKeys, numQueries))})}));
}

void Nest::provePairs() {
  for (const char *rule :
       {"loops count only visible pairs", "loops count each visible pair",
        "loops count no pair twice", "loops reach each visible key"}) {
    report.require(rule);
    report.check(rule, !tiles.empty(), [] { return "has no tiles"; });
  }
  if (tiles.empty())
    return;
  bindLoops();
  findSequence();

  // A row and a column of the tile.
  OnlineAttentionOp first = tiles.front();
  auto queries = cast<RankedTensorType>(first.getQuery().getType());
  auto keys = cast<RankedTensorType>(first.getKey().getType());
  Term row = encoder.declareInteger("row"),
       column = encoder.declareInteger("column"),
       head = encoder.declareInteger("head");
  encoder.assume(between("0", row, number(queries.getDimSize(1) - 1)));
  encoder.assume(between("0", column, number(keys.getDimSize(0) - 1)));
  encoder.assume(between("0", head, number(queries.getDimSize(0) - 1)));
  Term p = encoder.define(plus(get(first.getQueryIndex()), row), false),
       k = encoder.define(plus(get(first.getKeyIndex()), column), false),
       h = encoder.define(plus(get(first.getHeadIndex()), head), false);
  Term query = encoder.define(minus(p, minus(numKeys, numQueries)), false);
  encoder.assume(less(query, numQueries));
  Term sees = all({less(k, numKeys), isKeyVisible(source, p, k),
                   isAllowed(encoder, source, {sequence, h, p, k})});
  std::vector<Term> counted;
  for (OnlineAttentionOp op : tiles) {
    std::vector<Term> path{isKeyVisible(op, p, k)};
    if (op.getNumKeys())
      path.push_back(less(k, get(op.getNumKeys())));
    for (Operation *child = op; child->getParentOp();
         child = child->getParentOp())
      if (auto branch = dyn_cast<scf::IfOp>(child->getParentOp())) {
        Term condition = report.options.fault == Fault::Check
                             ? "true"
                             : get(branch.getCondition());
        bool isThen = child->getBlock() == branch.thenBlock();
        path.push_back(isThen ? condition : negate(condition));
      }
    path.push_back(isAllowed(encoder, op, {sequence, h, p, k}));
    counted.push_back(all(path));
  }
  // Tiles are alternatives in the same iteration.
  std::vector<Term> once;
  for (auto [i, op] : llvm::enumerate(tiles)) {
    report.check("loops count no pair twice",
                 op->getParentOfType<scf::ForOp>() ==
                     first->getParentOfType<scf::ForOp>(),
                 [] { return "in a loop of its own"; });
    once.push_back(
        call("=", {get(op.getQueryIndex()), get(first.getQueryIndex())}));
    once.push_back(
        call("=", {get(op.getKeyIndex()), get(first.getKeyIndex())}));
    once.push_back(
        call("=", {get(op.getHeadIndex()), get(first.getHeadIndex())}));
    for (size_t j = 0; j < i; ++j)
      once.push_back(negate(all({counted[i], counted[j]})));
  }
  claim("loops count no pair twice", all(once));
  claim("loops count only visible pairs", implies(any(counted), sees));
  claim("loops count each visible pair",
        all({implies(sees, any(counted)),
             call("=", {stepOfKeys, number(keys.getDimSize(0))})}));
  // Any key, which need not be one of this iteration.
  Term other = encoder.declareInteger("key");
  encoder.assume(between("0", other, minus(numKeys, "1")));
  claim("loops reach each visible key",
        implies(isKeyVisible(source, p, other),
                all({atMost(beginOfKeys, other), less(other, endOfKeys)})));
}

static void proveNests(MLIRContext &context, Report &report) {
  const char *regions[] = {"", R"(where(%b, %h, %i, %j) {
    %d = arith.subi %i, %j : index
    %y = arith.cmpi slt, %d, %c : index
    posenc.yield %y : i1
  })",
                           R"(where(%b, %h, %i, %j) {
    %e = arith.constant 8 : index
    %a = arith.divui %j, %e : index
    %d = arith.floordivsi %i, %e : index
    %y = arith.cmpi eq, %a, %d : index
    posenc.yield %y : i1
  })"};
  // Options, and the number of tiles of queries in a block.
  std::vector<std::pair<std::string, int64_t>> options{
      {"rows=4 groups=3 keys=8", 3},
      {"rows=4 keys=4", 1},
      {"rows=4 groups=2 keys=4 aligned-key-tiles=true", 2},
      {"rows=6 keys=5 one-head=true aligned-key-tiles=true", 1}};
  std::vector<std::string> masks{"", "causal ", "window_left = 5 ",
                                 "causal window_left = 9 ",
                                 "window_left = 2 window_right = 3 "};
  if (report.options.isQuick) {
    options.resize(1);
    masks = {"causal window_left = 9 "};
  }
  for (const auto &[option, groups] : options)
    for (const std::string &mask : masks)
      for (const char *region : regions)
        for (int kind = 0; kind < 3; ++kind) {
          bool isRagged = kind == 2;
          // Quotients of positions in ragged lists take z3 many minutes.
          if (isRagged && *region &&
              (report.options.isQuick || region == regions[2]))
            continue;
          std::string query =
              isRagged ? "tensor<?x4x8xf32>" : "tensor<?x?x4x8xf32>";
          std::string key =
              isRagged ? "tensor<?x2x8xf32>" : "tensor<?x?x2x8xf32>";
          const char *lists[] = {
              "", "lengths(%l : tensor<?xi64>)",
              "cu_seqlens(%l, %m : tensor<?xi64>, tensor<?xi64>)"};
          std::string text =
              llvm::formatv(R"(
func.func @f(%q: {0}, %k: {1}, %v: {1}, %l: tensor<?xi64>,
             %m: tensor<?xi64>, %c: index) -> {0} {{
  %r = posenc.attention {2}ins(%q, %k, %v : {0}, {1}, {1})
      {3} outs(%q : {0}) {4}
  return %r : {0}
})",
                            query, key, mask, lists[kind], region)
                  .str();
          Nest(context, report, text, option, /*isRunning=*/true).provePairs();
          Nest(context, report, text, option, /*isRunning=*/false)
              .proveQueries(groups);
        }
}

void mlir::posenc::proofs::proveVisibleKeys(MLIRContext &context,
                                            Report &report) {
  // Each function of PositionMask that emits code is a rule.
  std::string header = readSource(
      report.options, "include/posenc/Transforms/AttentionIndices.h");
  size_t begin = header.find("struct VisibleKeys"),
         end = header.find("struct AttentionSequence", begin);
  std::string text = header.substr(begin, end - begin);
  std::regex method("(?:Value|VisibleKeys) (emit\\w+)\\(");
  for (std::sregex_iterator it(text.begin(), text.end(), method), last;
       it != last; ++it)
    report.require((*it)[1]);
  proveMasks(context, report);
  proveNests(context, report);
}
