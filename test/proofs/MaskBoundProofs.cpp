//===- MaskBoundProofs.cpp - the bounds of where regions ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operation of arith and math on integers is tried in a region `where`,
// on integers of which only bounds are known. If MaskBounds has bounds of its
// result, they are a rule, and the claim is: the region is true for no pair of
// a tile that is skipped, and for all pairs of a tile that is full.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

/// Keys of the tiles for which tables have bounds.
static constexpr int64_t kTile = 32;

/// Functions of attention whose arguments are what regions depend on: for each
/// type, a number that is the same for all pairs, and elements of keys and
/// their bounds in a tile.
static constexpr const char *kModule = R"(
!x = tensor<1x?x2x8xf32>
func.func @f(%x: !x, %b: index, %fh: index, %lh: index, %fq: index,
             %lq: index, %fk: index, %lk: index, LISTS) {
  %r = posenc.attention ins(%x, %x, %x : !x, !x, !x) outs(%x : !x)
      where(%batch, %h, %i, %j) {
    %t = arith.constant true
    posenc.yield %t : i1
  }
  return
}
)";
static constexpr const char *kTypes[] = {"i1", "i8", "i32", "i64", "index"};

namespace {
/// A region, its tile and what is known of both.
class Case {
public:
  Case(MLIRContext &context, Report &report)
      : report(report), b(UnknownLoc::get(&context), &context) {
    std::string text = kModule, lists;
    for (StringRef type : kTypes) {
      std::string bounds = (type == "i1" ? "i8" : type).str();
      lists += (lists.empty() ? "" : ", ") +
               llvm::formatv("%s_{0}: {0}, %e0_{0}: tensor<?x{0}>, %e1_{0}: "
                             "tensor<?x{0}>, %t0_{0}: tensor<?x?x2x{1}>, "
                             "%t1_{0}: tensor<?x?x2x{1}>",
                             type, bounds)
                   .str();
    }
    text.replace(text.find("LISTS"), 5, lists);
    module = parse(context, text);
    function = *module->getOps<func::FuncOp>().begin();
    function.walk([&](AttentionOp op) { attention = op; });
    block = &attention.getWhere().front();
    block->clear();
    b.setInsertionPointToStart(block);
    for (auto [number, name] : llvm::enumerate(kTypes))
      firstOfType[name] = 8 + 5 * number;
    const char *names[] = {"x", "batch", "fh", "lh", "fq", "lq", "fk", "lk"};
    for (unsigned i = 1; i < 8; ++i)
      encoder.bind(function.getArgument(i),
                   encoder.declare(b.getIndexType(), names[i]));
    // Positions are far below 2^56; keys and sequences are not negative.
    Term limit = number(int64_t{1} << 56);
    for (unsigned i = 0; i < 4; ++i) {
      Term first = get(i ? 2 * i : 1), last = get(i ? 2 * i + 1 : 1);
      Term at = i ? encoder.declare(b.getIndexType(), "at") : first;
      encoder.assume(between(first, at, last));
      encoder.assume(less(last, limit));
      encoder.assume(less(i == 2 ? call("-", {limit}) : "(- 1)", first));
      pair.push_back(at);
    }
    encoder.assume(call("=", {call("mod", {get(6), number(kTile)}), "0"}));
    encoder.assume(less(get(7), plus(get(6), number(kTile))));
  }

  Term get(unsigned argument) {
    return encoder.get(function.getArgument(argument));
  }
  Value getArgument(Type type, unsigned number) {
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return function.getArgument(firstOfType[name] + number);
  }
  /// Adds the same number for all pairs.
  Value addScalar(Type type) {
    Value scalar = getArgument(type, 0);
    encoder.bind(scalar, encoder.declare(type, "scalar"));
    return scalar;
  }
  /// Adds element `j` of a tensor, whose bounds a table has.
  Value addElement(Type type, unsigned number) {
    Value tensor = getArgument(type, 1 + number),
          table = getArgument(type, 3 + number);
    Value element = tensor::ExtractOp::create(b, tensor, block->getArgument(3));
    loads.emplace_back(element.getDefiningOp(), table);
    return element;
  }
  /// Yields an i1, or the order of a number and any number.
  void yield(Value value) {
    if (!value.getType().isInteger(1))
      value = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, value,
                                    addScalar(value.getType()));
    YieldOp::create(b, value);
  }

  PairTile getTile() {
    auto at = [&](unsigned i) { return function.getArgument(i); };
    return {at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  }
  SmallVector<Value> getTables() {
    SmallVector<Value> tables(std::distance(block->begin(), block->end()));
    for (auto [op, table] : loads)
      tables[std::distance(block->begin(), op->getIterator())] = table;
    return tables;
  }
  /// Assumes what tables have.
  void assumeTables() {
    Term tile = call("div", {get(6), number(kTile)});
    for (auto [op, table] : loads) {
      Term element = encoder.get(op->getResult(0));
      Term low = encoder.getElement(table, {pair[0], tile, "0"}),
           high = encoder.getElement(table, {pair[0], tile, "1"});
      if (!op->getResult(0).getType().isInteger(1)) {
        encoder.assume(between(low, element, high));
        continue;
      }
      for (const Term &bound : {low, high})
        encoder.assume(between("0", bound, "1"));
      encoder.assume(implies(element, call("=", {low, "1"})));
      encoder.assume(implies(call("=", {high, "1"}), element));
    }
  }
  /// Gives the arguments of the region the pair.
  void bindPair() {
    for (auto [argument, at] : llvm::zip_equal(block->getArguments(), pair))
      encoder.bind(argument, at);
  }
  /// Claims that the mask is right for the pair. Returns whether there is one.
  bool claim(const std::string &rule, const TileMask &mask,
             bool impossible = false) {
    if (!mask)
      return false;
    Term holds = encoder.get(cast<YieldOp>(block->getTerminator()).getValue());
    std::vector<Term> claims;
    encoder.fault = report.options.fault;
    if (mask.isAny)
      claims.push_back(implies(holds, encoder.get(mask.isAny)));
    if (mask.isAll)
      claims.push_back(implies(encoder.get(mask.isAll), holds));
    report.add(mlir::posenc::proofs::claim(rule, encoder, all(claims)),
               impossible);
    return true;
  }
  /// Emits the bounds of the tile with tables, and claims that they are right.
  bool prove(const std::string &rule) {
    bindPair();
    MaskBounds bounds(attention.getWhere());
    bounds.setTables(getTables(), kTile);
    assumeTables();
    b.setInsertionPointAfter(attention);
    return claim(rule, bounds.emit(b, getTile()));
  }

  Report &report;
  ImplicitLocOpBuilder b;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  AttentionOp attention;
  Block *block;
  Encoder encoder;
  /// The sequence, head, query and key.
  std::vector<Term> pair;

private:
  std::map<std::string, unsigned> firstOfType;
  std::vector<std::pair<Operation *, Value>> loads;
};

/// An operand: an element, a position of a query, or a constant.
struct Operand {
  enum Kind { Element, Position, Constant } kind;
  int64_t constant = 0;
};
} // namespace

/// Returns the operations of arith and math.
static std::vector<std::string> getNames(MLIRContext &context) {
  std::vector<std::string> names;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (llvm::is_contained({"arith", "math"}, name.getDialectNamespace()))
      names.push_back(name.getStringRef().str());
  return names;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static Value addOperand(Case &one, Type type, const Operand &operand,
                        unsigned number) {
  if (operand.kind == Operand::Position)
    return one.block->getArgument(2);
  if (operand.kind == Operand::Element)
    return one.addElement(type, number % 2);
  return arith::ConstantOp::create(
      one.b, one.b.getIntegerAttr(type, operand.constant));
}

/// Whether the operation has such operands and such a result. Most do not.
static bool isOperation(MLIRContext &context, StringRef name,
                        ArrayRef<Type> types, Type result,
                        std::optional<int64_t> predicate) {
  Builder b(&context);
  Block block;
  OperationState state(b.getUnknownLoc(), name);
  for (Type type : types)
    state.addOperands(block.addArgument(type, b.getUnknownLoc()));
  state.addTypes(result);
  if (predicate)
    state.addAttribute("predicate", b.getI64IntegerAttr(*predicate));
  Operation *op = Operation::create(state);
  bool isValid = succeeded(verify(op));
  op->erase();
  return isValid;
}

/// Tries an operation. Returns whether MaskBounds has a rule for it.
static bool tryOperation(MLIRContext &context, Report &report, StringRef name,
                         ArrayRef<Type> types, ArrayRef<Operand> operands,
                         Type result, std::optional<int64_t> predicate) {
  if (!isOperation(context, name, types, result, predicate))
    return false;
  Case one(context, report);
  OperationState state(one.b.getLoc(), name);
  for (auto [i, operand] : llvm::enumerate(operands))
    state.addOperands(addOperand(one, types[i], operand, i));
  state.addTypes(result);
  if (predicate)
    state.addAttribute("predicate", one.b.getI64IntegerAttr(*predicate));
  Operation *op = one.b.create(state);
  one.yield(op->getResult(0));
  std::string rule = name.str();
  if (predicate)
    rule += " " + arith::stringifyCmpIPredicate(
                      static_cast<arith::CmpIPredicate>(*predicate))
                      .str();
  return one.prove(rule);
}

static std::vector<Operand> getOperands(const Report &report, Type type) {
  std::vector<Operand> operands{{Operand::Element}};
  if (type.isIndex())
    operands.push_back({Operand::Position});
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  std::set<int64_t> constants;
  std::vector<int64_t> some{-5,
                            -1,
                            0,
                            1,
                            2,
                            7,
                            16,
                            width - 1,
                            llvm::maxIntN(width),
                            int64_t{1} << 20};
  if (report.options.isQuick)
    some = {0, 3};
  for (int64_t constant : some)
    if (llvm::isIntN(width, constant) || (width == 1 && constant == 1))
      constants.insert(constant);
  for (int64_t constant : constants)
    operands.push_back({Operand::Constant, constant});
  return operands;
}

static void proveOperations(MLIRContext &context, Report &report) {
  Builder builder(&context);
  std::vector<Type> types{builder.getI1Type(), builder.getIndexType()};
  types.push_back(builder.getI32Type());
  if (!report.options.isQuick)
    types.push_back(builder.getI64Type());
  types.push_back(builder.getIntegerType(8));
  auto isConstant = [](const Operand &operand) {
    return operand.kind == Operand::Constant;
  };
  for (const std::string &name : getNames(context)) {
    if (name == "arith.constant" || name == "arith.cmpi" ||
        name == "arith.cmpf")
      continue;
    for (Type type : types) {
      std::vector<Operand> operands = getOperands(report, type);
      for (Type result : types)
        tryOperation(context, report, name, {type}, {{Operand::Element}},
                     result, std::nullopt);
      // A quick run converts other integers only.
      if (report.options.isQuick && !type.isIndex() && !type.isInteger(1))
        continue;
      for (const Operand &left : operands)
        for (const Operand &right : operands)
          if (!isConstant(left) || !isConstant(right))
            tryOperation(context, report, name, {type, type}, {left, right},
                         type, std::nullopt);
      Operand element{Operand::Element};
      tryOperation(context, report, name, {types[0], type, type},
                   {element, element, element}, type, std::nullopt);
    }
  }
  if (report.options.isQuick)
    types.resize(2);
  for (Type type : types)
    for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i)
      for (const Operand &left : getOperands(report, type))
        for (const Operand &right : getOperands(report, type))
          if (!isConstant(left) || !isConstant(right))
            tryOperation(context, report, "arith.cmpi", {type, type},
                         {left, right}, types[0], i);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Applies an operation to an index, with a constant if it has two operands;
/// null if it has other operands. A cast is one to i64 and back.
static Value applyToIndex(Case &one, StringRef name, Value index,
                          int64_t constant, bool isFirst) {
  if (name == "arith.index_cast") {
    Value wide = arith::IndexCastOp::create(one.b, one.b.getI64Type(), index);
    return arith::IndexCastOp::create(one.b, one.b.getIndexType(), wide);
  }
  OperationState state(one.b.getLoc(), name);
  Value other = arith::ConstantIndexOp::create(one.b, constant);
  state.addOperands(isFirst ? ValueRange{index, other}
                            : ValueRange{other, index});
  state.addTypes(one.b.getIndexType());
  Operation *op = one.b.create(state);
  if (succeeded(verify(op)))
    return op->getResult(0);
  op->erase();
  return nullptr;
}

/// Claims the bounds of elements at an index that depends on the query or on
/// the key. Loops over elements have `kUnrolled` iterations at most.
static bool claimElements(Case &one, const std::string &rule, Value index,
                          unsigned argument) {
  Value tensor = one.getArgument(one.b.getI32Type(), 1);
  one.yield(tensor::ExtractOp::create(one.b, tensor, index));
  // The region reads at the index of every pair, so it is in bounds.
  Term size = number(int64_t{1} << 40);
  for (const Term &at :
       {one.get(2 * argument), one.get(2 * argument + 1), one.pair[argument]}) {
    one.encoder.push();
    one.bindPair();
    one.encoder.bind(one.block->getArgument(argument), at);
    Term read = one.encoder.get(index);
    one.encoder.assume(call("and", {atMost("0", read), less(read, size)}));
    one.encoder.pop();
  }
  one.bindPair();
  MaskBounds bounds(one.attention.getWhere());
  one.b.setInsertionPointAfter(one.attention);
  // No element is at min(query, -3), for one.
  return one.claim(rule, bounds.emit(one.b, one.getTile()),
                   /*impossible=*/true);
}

static void proveElements(MLIRContext &context, Report &report) {
  std::vector<std::string> names = getNames(context);
  llvm::erase_if(names, [](StringRef name) {
    return name.contains("cmp") || name == "arith.constant" ||
           name.starts_with("math");
  });
  std::vector<int64_t> constants{16, -3, 1, int64_t{1} << 55,
                                 -(int64_t{1} << 55)};
  if (report.options.isQuick)
    constants = {16};
  // Operations for which there is a rule, which are then combined.
  struct Step {
    std::string name;
    int64_t constant;
    bool isFirst;
  };
  std::vector<Step> steps;
  for (const std::string &name : names)
    for (int64_t constant : constants)
      for (bool isFirst : {true, false}) {
        Case one(context, report);
        Value index = applyToIndex(one, name, one.block->getArgument(2),
                                   constant, isFirst);
        if (index && claimElements(one, "element at " + name, index, 2))
          steps.push_back({name, constant, isFirst});
      }
  for (const Step &first : steps)
    for (const Step &second : steps) {
      if (report.options.isQuick && first.name != second.name)
        continue;
      Case one(context, report);
      Value index = applyToIndex(one, first.name, one.block->getArgument(3),
                                 first.constant, first.isFirst);
      index = applyToIndex(one, second.name, index, second.constant,
                           second.isFirst);
      claimElements(one, "element at two operations", index, 3);
    }
  // A query's index, and a key's, of blocks.
  Case one(context, report);
  Value tensor = one.function.getBody().front().addArgument(
      RankedTensorType::get({ShapedType::kDynamic, ShapedType::kDynamic},
                            one.b.getI32Type()),
      one.b.getLoc());
  Value of[2];
  for (unsigned i : {0, 1})
    of[i] = applyToIndex(one, "arith.floordivsi", one.block->getArgument(2 + i),
                         16, true);
  one.yield(tensor::ExtractOp::create(one.b, tensor, ValueRange{of[0], of[1]}));
  one.bindPair();
  MaskBounds bounds(one.attention.getWhere());
  one.b.setInsertionPointAfter(one.attention);
  report.require("element at two indices");
  one.claim("element at two indices", bounds.emit(one.b, one.getTile()));
}

/// The elements of keys for tables, and parts of a tile.
static void proveParts(MLIRContext &context, Report &report) {
  for (unsigned type : {0u, 1u}) {
    Case one(context, report);
    Type element = type ? one.b.getI32Type() : one.b.getI1Type();
    Value value = one.addElement(element, 0);
    one.yield(value);
    one.bindPair();
    MaskBounds bounds(one.attention.getWhere());
    one.b.setInsertionPointAfter(one.attention);
    auto found =
        bounds.emitElements(one.b, one.getTile().batch, one.getTile().firstKey,
                            one.getTile().lastKey);
    report.require("elements of keys");
    for (const MaskBounds::Elements &elements : found) {
      Term x = one.encoder.get(value);
      one.encoder.fault = report.options.fault;
      Term low = one.encoder.get(elements.low),
           high = one.encoder.get(elements.high);
      report.add(claim("elements of keys", one.encoder,
                       type ? between(low, x, high)
                            : all({implies(x, low), implies(high, x)})));
    }
  }
  // The element depends on the key alone, so that of the whole tile serves.
  report.require("part of a tile");
  Case one(context, report);
  Value element = one.addElement(one.b.getIndexType(), 0);
  Value distance =
      arith::SubIOp::create(one.b, one.block->getArgument(2), element);
  Value isNear = arith::CmpIOp::create(one.b, arith::CmpIPredicate::sle,
                                       distance, one.block->getArgument(3));
  one.yield(isNear);
  one.bindPair();
  MaskBounds bounds(one.attention.getWhere());
  bounds.setTables(one.getTables(), kTile);
  one.assumeTables();
  one.b.setInsertionPointAfter(one.attention);
  (void)bounds.emit(one.b, one.getTile());
  PairTile part = one.getTile();
  Block &entry = one.function.getBody().front();
  for (Value *query : {&part.firstQuery, &part.lastQuery}) {
    *query = entry.addArgument(one.b.getIndexType(), one.b.getLoc());
    one.encoder.bind(*query, one.encoder.declare(one.b.getIndexType(), "part"));
  }
  one.encoder.assume(
      call("<=", {one.get(4), one.encoder.get(part.firstQuery), one.pair[2],
                  one.encoder.get(part.lastQuery), one.get(5)}));
  one.claim("part of a tile", bounds.emitPart(one.b, part));
}

void mlir::posenc::proofs::proveMaskBounds(MLIRContext &context,
                                           Report &report) {
  context.loadDialect<math::MathDialect>();
  StringRef path = "lib/Transforms/MaskBounds.cpp";
  requireOperations(context, report, path, "Emitter::evaluateInteger",
                    "Bounds MaskBounds::Emitter::evaluate(");
  requireOperations(context, report, path, "Emitter::getMonotonicOperand",
                    "Emitter::findMonotonic", "element at ");
  proveOperations(context, report);
  proveElements(context, report);
  proveParts(context, report);
}
