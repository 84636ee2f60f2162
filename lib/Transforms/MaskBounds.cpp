//===- MaskBounds.cpp - tiles that a mask_mod region masks ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Transforms/MaskBounds.h"

#include "Intervals.h"

#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// Sequences, heads and positions are far below this power of two, so that sums
/// of a few of them do not wrap.
static constexpr unsigned kPositionBits = 56;

/// Elements with several indices that differ between pairs are bounded if there
/// is one for a block of at least this many queries and keys. Loading more
/// elements takes longer than evaluating the region.
static constexpr int64_t kMinBlock = 16;

static bool isBool(Type type) { return type.isInteger(1); }

/// Whether intervals can bound values of the type.
static bool hasIntervals(Type type) {
  return type.isIndex() || (type.isInteger() && !isBool(type) &&
                            type.getIntOrFloatBitWidth() <= 64);
}

namespace {
/// Bounds a value of the region for all pairs of a tile.
struct Bounds {
  /// The value itself if it is the same for all pairs.
  Value exact;
  /// The bounds of an integer other than i1.
  Interval interval;
  /// The bounds of an i1.
  Truth truth;
  /// Whether the value depends on the head or on the query.
  bool isOfQueries = false;
};

/// An index that is a monotonic function of one argument of the region, which
/// does not grow faster than the argument.
struct MonotonicIndex {
  unsigned argument;
  bool isDecreasing;
  /// Whether `kMinBlock` or more consecutive values of the argument have the
  /// same index.
  bool isOfBlocks;
};

/// An index of an element that a tile reads: its number, and the inclusive
/// range of its values.
struct IndexRange {
  unsigned number;
  Value from, to;
};
} // namespace

/// Emits the bounds of all values of a region.
class MaskBounds::Emitter {
public:
  /// A tile without heads and queries has bounds of elements only.
  Emitter(ImplicitLocOpBuilder &builder, const MaskBounds &bounds,
          const PairTile &tile, const Emitter *whole)
      : b(builder), intervals(builder), bounds(bounds), region(bounds.where),
        whole(whole), hasQueries(tile.firstQuery != nullptr) {
    setArgument(0, tile.batch, tile.batch);
    setArgument(1, tile.firstHead, tile.lastHead);
    setArgument(2, tile.firstQuery, tile.lastQuery);
    setArgument(3, tile.firstKey, tile.lastKey);
  }

  TileMask emit();

  /// The elements of which loops have computed the bounds.
  SmallVector<Elements> elements;

  /// The first operation that bounds nothing.
  Operation *unknown = nullptr;

private:
  void setArgument(unsigned number, Value first, Value last);
  Bounds evaluate(Operation &op);
  Bounds cloneExact(Operation &op);
  Interval evaluateInteger(Operation &op);
  Truth evaluateCondition(Operation &op);
  std::optional<SmallVector<IndexRange>> findIndexRanges(OperandRange indices);
  Bounds evaluateLoad(Operation &op);
  std::optional<std::pair<Value, Value>> readTable(Operation &op);
  std::pair<Value, Value> emitElements(Operation &op,
                                       ArrayRef<IndexRange> ranges);
  Value emitIndex(Value index, unsigned argument, Value at);
  std::optional<unsigned> getMonotonicOperand(Operation &op,
                                              bool mayWrap) const;
  std::optional<MonotonicIndex> findMonotonic(Value index) const;

  /// Returns what is known about a value of the region or from outside.
  Bounds get(Value value) const {
    auto it = values.find(value);
    if (it != values.end())
      return it->second;
    Bounds outside;
    if (value.getParentRegion() != &region)
      outside.exact = value;
    return outside;
  }
  Interval getInterval(Value value);
  Truth getTruth(Value value);
  std::optional<int64_t> getConstant(Value value) const {
    APInt constant;
    Value exact = get(value).exact;
    if (!exact || !matchPattern(exact, m_ConstantInt(&constant)) ||
        constant.getSignificantBits() > 64)
      return std::nullopt;
    return constant.getSExtValue();
  }
  /// Returns the second operand if it is a positive constant.
  std::optional<int64_t> getDivisor(Operation &op) const {
    std::optional<int64_t> constant = getConstant(op.getOperand(1));
    return constant && *constant > 0 ? constant : std::nullopt;
  }
  /// Returns the second operand if it is a constant number of bits by which
  /// integers of this type can be shifted.
  std::optional<int64_t> getShift(Operation &op) const {
    std::optional<int64_t> constant = getConstant(op.getOperand(1));
    unsigned width = getIntegerWidth(op.getResult(0).getType());
    return constant && *constant >= 0 && *constant < width ? constant
                                                           : std::nullopt;
  }

  ImplicitLocOpBuilder &b;
  IntervalBuilder intervals;
  const MaskBounds &bounds;
  Region &region;
  const Emitter *whole;
  bool hasQueries;
  DenseMap<Value, Bounds> values;
  /// The first and the last value of each argument.
  SmallVector<std::pair<Value, Value>, 4> arguments;
};

void MaskBounds::Emitter::setArgument(unsigned number, Value first,
                                      Value last) {
  arguments.emplace_back(first, last);
  Bounds &range = values[region.getArgument(number)];
  range.isOfQueries = number == 1 || number == 2;
  if (!first)
    return;
  if (first == last)
    range.exact = first;
  range.interval = intervals.fromScalar(first, kPositionBits);
  range.interval.high = intervals.fromScalar(last, kPositionBits).high;
}

Interval MaskBounds::Emitter::getInterval(Value value) {
  Bounds bounds = get(value);
  if (!bounds.interval && bounds.exact && hasIntervals(value.getType()))
    return intervals.fromScalar(bounds.exact);
  return bounds.interval;
}

Truth MaskBounds::Emitter::getTruth(Value value) {
  Bounds bounds = get(value);
  if (bounds.exact && isBool(value.getType()))
    return {bounds.exact, bounds.exact};
  return bounds.truth;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Whether an operation can be computed for all pairs of a tile at once if its
/// operands are the same for all of them.
static bool canClone(Operation &op) {
  auto isInteger = [](Type type) { return type.isIntOrIndex(); };
  if (isa<memref::LoadOp, tensor::ExtractOp>(op))
    return isInteger(op.getResult(0).getType());
  return isa_and_nonnull<arith::ArithDialect>(op.getDialect()) &&
         llvm::all_of(op.getOperandTypes(), isInteger) &&
         llvm::all_of(op.getResultTypes(), isInteger) &&
         op.getNumResults() == 1;
}

Bounds MaskBounds::Emitter::cloneExact(Operation &op) {
  IRMapping mapping;
  for (Value operand : op.getOperands())
    mapping.map(operand, get(operand).exact);
  Bounds bounds;
  bounds.exact = b.clone(op, mapping)->getResult(0);
  return bounds;
}

Interval MaskBounds::Emitter::evaluateInteger(Operation &op) {
  unsigned width = getIntegerWidth(op.getResult(0).getType());
  // A condition that becomes a number.
  if (isa<arith::ExtUIOp, arith::ExtSIOp>(op) &&
      isBool(op.getOperand(0).getType())) {
    Truth truth = getTruth(op.getOperand(0));
    int64_t one = isa<arith::ExtUIOp>(op) ? 1 : -1;
    Value zero = intervals.createConstant(0),
          number = intervals.createConstant(one);
    Value ifAny =
        truth.isAny ? intervals.choose(truth.isAny, number, zero) : number;
    Value ifAll =
        truth.isAll ? intervals.choose(truth.isAll, number, zero) : zero;
    return one > 0 ? Interval{ifAll, ifAny, 1} : Interval{ifAny, ifAll, 1};
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Truth truth = getTruth(select.getCondition());
    Interval ifTrue = getInterval(select.getTrueValue()),
             ifFalse = getInterval(select.getFalseValue());
    if (!ifTrue || !ifFalse)
      return {};
    Interval result = intervals.unite(ifTrue, ifFalse);
    if (truth.isAny)
      result = intervals.select(truth.isAny, result, ifFalse);
    if (truth.isAll)
      result = intervals.select(truth.isAll, ifTrue, result);
    return result;
  }
  SmallVector<Interval, 2> operands;
  for (Value operand : op.getOperands()) {
    operands.push_back(getInterval(operand));
    if (!operands.back())
      return {};
  }
  auto fromWidth = [&] { return getIntegerWidth(op.getOperand(0).getType()); };
  auto divide = [&](auto divided) -> Interval {
    std::optional<int64_t> divisor = getDivisor(op);
    return divisor ? divided(*divisor) : Interval();
  };
  auto shift = [&](auto shifted) -> Interval {
    std::optional<int64_t> shift = getShift(op);
    return shift ? shifted(*shift) : Interval();
  };
  return llvm::TypeSwitch<Operation *, Interval>(&op)
      .Case([&](arith::AddIOp) {
        return intervals.add(operands[0], operands[1], width);
      })
      .Case([&](arith::SubIOp) {
        return intervals.subtract(operands[0], operands[1], width);
      })
      .Case([&](arith::MulIOp) {
        std::optional<int64_t> left = getConstant(op.getOperand(0)),
                               right = getConstant(op.getOperand(1));
        if (!left && !right)
          return Interval();
        return intervals.multiply(operands[right ? 0 : 1],
                                  right ? *right : *left, width);
      })
      .Case([&](arith::DivSIOp) {
        return divide([&](int64_t divisor) {
          return intervals.map<arith::DivSIOp>(operands[0], divisor);
        });
      })
      .Case([&](arith::FloorDivSIOp) {
        return divide([&](int64_t divisor) {
          return intervals.map<arith::FloorDivSIOp>(operands[0], divisor);
        });
      })
      .Case([&](arith::DivUIOp) {
        return divide([&](int64_t divisor) {
          return intervals.mapUnsigned<arith::DivUIOp>(operands[0], divisor,
                                                       width);
        });
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) {
        return divide([&](int64_t divisor) {
          return intervals.getRemainder(operands[0], divisor,
                                        isa<arith::RemUIOp>(op));
        });
      })
      .Case([&](arith::ShRSIOp) {
        return shift([&](int64_t bits) {
          return intervals.map<arith::ShRSIOp>(operands[0], bits);
        });
      })
      .Case([&](arith::ShRUIOp) {
        return shift([&](int64_t bits) {
          return intervals.mapUnsigned<arith::ShRUIOp>(operands[0], bits,
                                                       width);
        });
      })
      .Case([&](arith::ShLIOp) {
        return shift([&](int64_t bits) {
          return bits > 62 ? Interval()
                           : intervals.multiply(operands[0], int64_t{1} << bits,
                                                width);
        });
      })
      .Case([&](arith::MinSIOp) {
        return intervals.getMin(operands[0], operands[1]);
      })
      .Case([&](arith::MaxSIOp) {
        return intervals.getMax(operands[0], operands[1]);
      })
      .Case([&](math::AbsIOp) { return intervals.getAbs(operands[0], width); })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto) { return intervals.truncate(operands[0], width); })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) {
        return fromWidth() < width
                   ? intervals.extendUnsigned(operands[0], fromWidth())
                   : intervals.truncate(operands[0], width);
      })
      .Default([](Operation *) { return Interval(); });
}

Truth MaskBounds::Emitter::evaluateCondition(Operation &op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    Interval left = getInterval(compare.getLhs()),
             right = getInterval(compare.getRhs());
    if (!left || !right)
      return {};
    return intervals.compare(compare.getPredicate(), left, right);
  }
  SmallVector<Truth, 3> operands;
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(op))
    for (Value operand : op.getOperands())
      operands.push_back(getTruth(operand));
  if (isa<arith::AndIOp>(op))
    return intervals.both(operands[0], operands[1]);
  if (isa<arith::OrIOp>(op))
    return intervals.either(operands[0], operands[1]);
  if (isa<arith::XOrIOp>(op))
    return intervals.differ(operands[0], operands[1]);
  if (isa<arith::SelectOp>(op))
    return intervals.either(
        intervals.both(operands[0], operands[1]),
        intervals.both(intervals.negate(operands[0]), operands[2]));
  return {};
}

Bounds MaskBounds::Emitter::evaluate(Operation &op) {
  auto isExact = [&](Value operand) { return get(operand).exact != nullptr; };
  Type type = op.getResult(0).getType();
  if (llvm::all_of(op.getOperands(), isExact) && canClone(op))
    return cloneExact(op);
  if (isa<memref::LoadOp, tensor::ExtractOp>(op))
    return bounds.readsElements ? evaluateLoad(op) : Bounds();
  Bounds result;
  if (isBool(type))
    result.truth = evaluateCondition(op);
  else if (hasIntervals(type))
    result.interval = evaluateInteger(op);
  return result;
}

//===----------------------------------------------------------------------===//
// Elements of tensors
//===----------------------------------------------------------------------===//

/// Returns the number of the operand that differs between pairs if the result
/// is a monotonic function of it. Unless `mayWrap`, the result must not wrap.
std::optional<unsigned>
MaskBounds::Emitter::getMonotonicOperand(Operation &op, bool mayWrap) const {
  if (isa<arith::IndexCastOp>(op))
    return 0;
  if (isa<arith::DivSIOp, arith::FloorDivSIOp>(op))
    return getDivisor(op) ? std::optional<unsigned>(0) : std::nullopt;
  if (isa<arith::ShRSIOp>(op))
    return getShift(op) ? std::optional<unsigned>(0) : std::nullopt;
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::nullopt;
  unsigned exact = get(op.getOperand(0)).exact ? 0 : 1;
  if (!get(op.getOperand(exact)).exact)
    return std::nullopt;
  std::optional<int64_t> constant = getConstant(op.getOperand(exact));
  bool isSmall = constant && llvm::isIntN(kPositionBits + 1, *constant);
  if (isa<arith::AddIOp, arith::SubIOp>(op) && !mayWrap && !isSmall)
    return std::nullopt;
  return 1 - exact;
}

std::optional<MonotonicIndex>
MaskBounds::Emitter::findMonotonic(Value index) const {
  // A sum that is the index itself does not wrap, because the indices of both
  // ends of the tile are in the bounds of the tensor. A sum that is an operand
  // of another operation could wrap without notice.
  bool isDecreasing = false, mayWrap = true, isOfBlocks = false;
  while (Operation *op = index.getDefiningOp()) {
    std::optional<unsigned> operand;
    if (getIntegerWidth(index.getType()) == 64)
      operand = getMonotonicOperand(*op, mayWrap);
    if (!operand)
      return std::nullopt;
    isDecreasing ^= isa<arith::SubIOp>(op) && *operand == 1;
    isOfBlocks |= isa<arith::DivSIOp, arith::FloorDivSIOp>(op) &&
                  *getDivisor(*op) >= kMinBlock;
    mayWrap &= isa<arith::AddIOp, arith::SubIOp, arith::IndexCastOp>(op);
    index = op->getOperand(*operand);
  }
  return MonotonicIndex{cast<BlockArgument>(index).getArgNumber(), isDecreasing,
                        isOfBlocks};
}

Value MaskBounds::Emitter::emitIndex(Value index, unsigned argument, Value at) {
  // The operations between the argument and the index form a chain.
  SmallVector<Operation *> chain;
  Value value = index;
  while (Operation *op = value.getDefiningOp()) {
    chain.push_back(op);
    for (Value operand : op->getOperands())
      if (!get(operand).exact)
        value = operand;
  }
  IRMapping mapping;
  mapping.map(region.getArgument(argument), at);
  for (Operation *op : llvm::reverse(chain)) {
    for (Value operand : op->getOperands())
      if (Value exact = get(operand).exact)
        mapping.map(operand, exact);
    b.clone(*op, mapping);
  }
  return mapping.lookup(index);
}

/// Finds the indices of a load that differ between pairs. Returns nullopt if
/// the elements have no bounds.
std::optional<SmallVector<IndexRange>>
MaskBounds::Emitter::findIndexRanges(OperandRange indices) {
  SmallVector<std::pair<unsigned, MonotonicIndex>> varying;
  for (auto [i, index] : llvm::enumerate(indices)) {
    if (get(index).exact)
      continue;
    std::optional<MonotonicIndex> monotonic = findMonotonic(index);
    if (!monotonic)
      return std::nullopt;
    varying.emplace_back(i, *monotonic);
  }
  if (varying.size() > 1 && !llvm::all_of(varying, [](const auto &index) {
        return index.second.isOfBlocks;
      }))
    return std::nullopt;
  SmallVector<IndexRange> ranges;
  for (auto [i, monotonic] : varying) {
    auto [first, last] = arguments[monotonic.argument];
    if (monotonic.isDecreasing)
      std::swap(first, last);
    ranges.push_back({i, emitIndex(indices[i], monotonic.argument, first),
                      emitIndex(indices[i], monotonic.argument, last)});
  }
  return ranges;
}

/// Returns the bounds of the elements from a table, if it has them.
std::optional<std::pair<Value, Value>>
MaskBounds::Emitter::readTable(Operation &op) {
  if (bounds.tables.empty())
    return std::nullopt;
  size_t number = std::distance(region.front().begin(), op.getIterator());
  Value table = bounds.tables[number];
  if (!table)
    return std::nullopt;
  Value tile = b.createOrFold<arith::DivUIOp>(
      arguments[3].first, arith::ConstantIndexOp::create(b, bounds.keysOfTile));
  auto read = [&](int64_t i) -> Value {
    Value element = tensor::ExtractOp::create(
        b, table,
        ValueRange{arguments[0].first, tile,
                   arith::ConstantIndexOp::create(b, i)});
    return isBool(op.getResult(0).getType())
               ? arith::TruncIOp::create(b, b.getI1Type(), element)
               : element;
  };
  Value low = read(0);
  return std::pair(low, read(1));
}

/// Emits loops over the elements with these indices, which return their bounds.
std::pair<Value, Value>
MaskBounds::Emitter::emitElements(Operation &op, ArrayRef<IndexRange> ranges) {
  Type type = op.getResult(0).getType();
  OperandRange indices = op.getOperands().drop_front();
  auto load = [&](ValueRange at) -> Value {
    IRMapping mapping;
    mapping.map(op.getOperand(0), get(op.getOperand(0)).exact);
    for (Value index : indices)
      if (Value exact = get(index).exact)
        mapping.map(index, exact);
    for (auto [range, value] : llvm::zip_equal(ranges, at))
      mapping.map(indices[range.number], value);
    return b.clone(op, mapping)->getResult(0);
  };
  auto combine = [&](Value element, ValueRange before) -> SmallVector<Value> {
    if (isBool(type))
      return {arith::OrIOp::create(b, before[0], element),
              arith::AndIOp::create(b, before[1], element)};
    return {arith::MinSIOp::create(b, before[0], element),
            arith::MaxSIOp::create(b, before[1], element)};
  };
  SmallVector<Value> begins, ends;
  Value one = arith::ConstantIndexOp::create(b, 1);
  for (const IndexRange &range : ranges) {
    begins.push_back(range.from);
    ends.push_back(b.createOrFold<arith::AddIOp>(range.to, one));
  }
  Value init = load(begins);
  scf::LoopNest nest = scf::buildLoopNest(
      b, b.getLoc(), begins, ends, SmallVector<Value>(ranges.size(), one),
      {init, init},
      [&](OpBuilder &builder, Location, ValueRange at, ValueRange before) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(builder.getInsertionBlock(),
                            builder.getInsertionPoint());
        return combine(load(at), before);
      });
  return {nest.results[0], nest.results[1]};
}

/// Bounds the elements by loading all of them. An index must be the same for
/// all pairs, or a monotonic function of a head, query or key. Both ends of its
/// range are indices that the region uses, too, so they are in the bounds of
/// the tensor.
Bounds MaskBounds::Emitter::evaluateLoad(Operation &op) {
  Type type = op.getResult(0).getType();
  if (!isBool(type) && !hasIntervals(type))
    return {};
  std::optional<std::pair<Value, Value>> found = readTable(op);
  if (!found) {
    std::optional<SmallVector<IndexRange>> ranges =
        findIndexRanges(op.getOperands().drop_front());
    if (!ranges)
      return {};
    found = emitElements(op, *ranges);
    unsigned number = std::distance(region.front().begin(), op.getIterator());
    elements.push_back({number, found->first, found->second});
  }
  Bounds result;
  if (isBool(type)) {
    result.truth = {found->first, found->second};
    return result;
  }
  result.interval = intervals.fromScalar(found->first);
  result.interval.high = intervals.fromScalar(found->second).high;
  return result;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

TileMask MaskBounds::Emitter::emit() {
  for (Operation &op : region.front().without_terminator()) {
    if (op.getNumResults() != 1) {
      if (!unknown)
        unknown = &op;
      continue;
    }
    Value value = op.getResult(0);
    bool isOfQueries = llvm::any_of(op.getOperands(), [&](Value operand) {
      return get(operand).isOfQueries;
    });
    Bounds result;
    if (whole && !isOfQueries)
      result = whole->get(value);
    else if (hasQueries || !isOfQueries)
      result = evaluate(op);
    result.isOfQueries = isOfQueries;
    if (!unknown && !result.exact && !result.interval && !result.truth.isAny &&
        !result.truth.isAll)
      unknown = &op;
    values[value] = result;
  }
  Truth truth =
      getTruth(cast<YieldOp>(region.front().getTerminator()).getValue());
  return {truth.isAny, truth.isAll};
}

MaskBounds::MaskBounds(Region &where, bool readsElements)
    : where(where), readsElements(readsElements) {}
MaskBounds::~MaskBounds() = default;

TileMask MaskBounds::emit(ImplicitLocOpBuilder &builder, const PairTile &tile) {
  if (where.empty())
    return {};
  last = std::make_unique<Emitter>(builder, *this, tile, /*whole=*/nullptr);
  return last->emit();
}

SmallVector<MaskBounds::Elements>
MaskBounds::emitElements(ImplicitLocOpBuilder &builder, Value batch,
                         Value firstKey, Value lastKey) {
  PairTile keys;
  keys.batch = batch;
  keys.firstKey = firstKey;
  keys.lastKey = lastKey;
  Emitter emitter(builder, *this, keys, /*whole=*/nullptr);
  (void)emitter.emit();
  return emitter.elements;
}

TileMask MaskBounds::emitPart(ImplicitLocOpBuilder &builder,
                              const PairTile &part) {
  if (where.empty())
    return {};
  return Emitter(builder, *this, part, last.get()).emit();
}

Operation *MaskBounds::getUnknownOperation() const {
  return last ? last->unknown : nullptr;
}

void mlir::posenc::reportMaskBounds(Operation *op, StringRef pass,
                                    const MaskBounds &bounds,
                                    const TileMask &mask) {
  Operation *unknown = bounds.getUnknownOperation();
  if (mask)
    return reportChoice(op, pass,
                        "skips tiles that 'where' masks, and evaluates it in "
                        "partial tiles only");
  if (unknown)
    reportMissed(
        op, pass,
        "'where' is evaluated for all pairs: tiles have no bounds of " +
            unknown->getName().getStringRef());
}
