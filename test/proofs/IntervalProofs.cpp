//===- IntervalProofs.cpp - the rules of IntervalBuilder ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of an operation on integers is in the bounds that IntervalBuilder
// emits, for all bounds and all integers in them. The bounds of the result
// again fit in the width and in the number of bits that the interval claims, so
// the claim about a whole region follows by induction.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "Transforms/Intervals.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <regex>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

namespace {
/// One application of a rule.
class Case {
public:
  Case(MLIRContext &context, Report &report, std::string rule, unsigned width)
      : b(UnknownLoc::get(&context), &context), report(report), rule(rule),
        width(width), module(ModuleOp::create(b.getLoc())), intervals(b) {
    b.setInsertionPointToStart(module->getBody());
  }

  /// Adds a value that is `term`.
  Value add(const Term &term, Type type) {
    Value value = block.addArgument(type, b.getLoc());
    encoder.bind(value, term);
    return value;
  }
  /// Adds any interval whose numbers have at most so many bits and the width,
  /// and a number in it.
  std::pair<Interval, Value> addInterval(unsigned bits, unsigned ofWidth = 0) {
    ofWidth = ofWidth ? ofWidth : width;
    Type type = b.getIntegerType(ofWidth);
    Term low = encoder.declare(type, "low"),
         high = encoder.declare(type, "high"), x = encoder.declare(type, "x");
    encoder.assume(between(low, x, high));
    for (const Term &bound : {low, high})
      assumeBits(bound, bits);
    return {Interval{add(low, b.getI64Type()), add(high, b.getI64Type()), bits},
            add(x, type)};
  }
  /// Adds any truth of which a part may be unknown, and one of its values.
  std::pair<Truth, Value> addTruth(bool hasAny, bool hasAll) {
    Type type = b.getI1Type();
    Term x = encoder.declare(type, "x");
    Truth truth;
    if (hasAny) {
      Term isAny = encoder.declare(type, "any");
      encoder.assume(implies(x, isAny));
      truth.isAny = add(isAny, type);
    }
    if (hasAll) {
      Term isAll = encoder.declare(type, "all");
      encoder.assume(implies(isAll, x));
      truth.isAll = add(isAll, type);
    }
    return {truth, add(x, type)};
  }
  /// Claims that a value, computed by the operation, is in the interval.
  void claim(const Interval &interval, Value value, unsigned ofWidth = 0) {
    if (!interval)
      return;
    ofWidth = ofWidth ? ofWidth : width;
    Term x = encoder.get(value);
    Term low = getFaulty(interval.low), high = getFaulty(interval.high);
    std::vector<Term> claims{between(low, x, high)};
    for (const Term &bound : {low, high})
      for (unsigned bits : {interval.bits, ofWidth - 1})
        claims.push_back(hasBits(bound, bits));
    report.add(mlir::posenc::proofs::claim(rule, encoder, all(claims)));
  }
  void claim(const Truth &truth, Value value) {
    Term x = encoder.get(value);
    std::vector<Term> claims;
    if (truth.isAny)
      claims.push_back(implies(x, getFaulty(truth.isAny)));
    if (truth.isAll)
      claims.push_back(implies(getFaulty(truth.isAll), x));
    if (!claims.empty())
      report.add(mlir::posenc::proofs::claim(rule, encoder, all(claims)));
  }

  Value constant(int64_t value, unsigned ofWidth = 0) {
    return arith::ConstantIntOp::create(b, value, ofWidth ? ofWidth : width);
  }

  ImplicitLocOpBuilder b;
  Report &report;
  std::string rule;
  unsigned width;
  /// Its arguments are used in the module.
  Block block;
  OwningOpRef<ModuleOp> module;
  IntervalBuilder intervals;
  Encoder encoder;

private:
  static Term hasBits(const Term &x, unsigned bits) {
    int64_t max = llvm::maxIntN(bits + 1);
    return between(number(-max - 1), x, number(max));
  }
  void assumeBits(const Term &x, unsigned bits) {
    encoder.assume(hasBits(x, bits));
  }
  Term getFaulty(Value value) {
    encoder.fault = report.options.fault;
    Term term = encoder.get(value);
    encoder.fault = Fault::None;
    return term;
  }
};

/// Widths of integers and numbers of bits that intervals of them may have.
std::vector<std::pair<unsigned, unsigned>> getWidths(const Report &report) {
  std::vector<std::pair<unsigned, unsigned>> widths;
  std::vector<unsigned> all{2, 8, 16, 32, 63, 64};
  if (report.options.isQuick)
    all = {8, 64};
  for (unsigned width : all)
    for (unsigned bits : {1u, 7u, 15u, 31u, 32u, 56u, 61u, 62u, 63u})
      if (bits < width && (!report.options.isQuick || bits >= 56 || bits == 7))
        widths.emplace_back(width, bits);
  return widths;
}

std::vector<int64_t> getFactors(const Report &report, unsigned width) {
  std::set<int64_t> factors;
  std::vector<int64_t> some{-(int64_t{1} << 31),
                            -7,
                            -1,
                            0,
                            1,
                            2,
                            3,
                            10,
                            int64_t{1} << 20,
                            llvm::maxIntN(width),
                            llvm::minIntN(width)};
  if (report.options.isQuick)
    some = {-7, 1, 3, llvm::maxIntN(width)};
  for (int64_t factor : some)
    if (llvm::isIntN(width, factor))
      factors.insert(factor);
  return {factors.begin(), factors.end()};
}
} // namespace

static void proveSums(MLIRContext &context, Report &report) {
  for (auto [width, bits] : getWidths(report))
    for (auto [otherWidth, otherBits] : getWidths(report)) {
      if (otherWidth != width)
        continue;
      auto prove = [&, width = width, bits = bits, otherBits = otherBits](
                       std::string rule, auto interval, auto value) {
        Case one(context, report, rule, width);
        auto [x, a] = one.addInterval(bits);
        auto [y, c] = one.addInterval(otherBits);
        one.claim(interval(one, x, y), value(one, a, c));
      };
      prove(
          "add",
          [](Case &one, Interval x, Interval y) {
            return one.intervals.add(x, y, one.width);
          },
          [](Case &one, Value a, Value c) -> Value {
            return arith::AddIOp::create(one.b, a, c);
          });
      prove(
          "subtract",
          [](Case &one, Interval x, Interval y) {
            return one.intervals.subtract(x, y, one.width);
          },
          [](Case &one, Value a, Value c) -> Value {
            return arith::SubIOp::create(one.b, a, c);
          });
      prove(
          "getMin",
          [](Case &one, Interval x, Interval y) {
            return one.intervals.getMin(x, y);
          },
          [](Case &one, Value a, Value c) -> Value {
            return arith::MinSIOp::create(one.b, a, c);
          });
      prove(
          "getMax",
          [](Case &one, Interval x, Interval y) {
            return one.intervals.getMax(x, y);
          },
          [](Case &one, Value a, Value c) -> Value {
            return arith::MaxSIOp::create(one.b, a, c);
          });
      // The value is that of either.
      for (bool isFirst : {true, false})
        prove(
            "unite",
            [](Case &one, Interval x, Interval y) {
              return one.intervals.unite(x, y);
            },
            [&](Case &, Value a, Value c) { return isFirst ? a : c; });
      for (bool isFirst : {true, false})
        prove(
            "select",
            [&](Case &one, Interval x, Interval y) {
              return one.intervals.select(
                  one.add(isFirst ? "true" : "false", one.b.getI1Type()), x, y);
            },
            [&](Case &, Value a, Value c) { return isFirst ? a : c; });
      for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i) {
        auto predicate = static_cast<arith::CmpIPredicate>(i);
        prove(
            "compare " + arith::stringifyCmpIPredicate(predicate).str(),
            [&](Case &one, Interval x, Interval y) {
              return one.intervals.compare(predicate, x, y);
            },
            [&](Case &one, Value a, Value c) -> Value {
              return arith::CmpIOp::create(one.b, predicate, a, c);
            });
      }
    }
}

static void proveFactors(MLIRContext &context, Report &report) {
  for (auto [width, bits] : getWidths(report)) {
    auto prove = [&, width = width, bits = bits](std::string rule,
                                                 auto interval, auto value) {
      Case one(context, report, rule, width);
      auto [x, a] = one.addInterval(bits);
      one.claim(interval(one, x), value(one, a));
    };
    for (int64_t factor : getFactors(report, width)) {
      prove(
          "multiply",
          [&](Case &one, Interval x) {
            return one.intervals.multiply(x, factor, one.width);
          },
          [&](Case &one, Value a) -> Value {
            return arith::MulIOp::create(one.b, a, one.constant(factor));
          });
      if (factor <= 0)
        continue;
      prove(
          "map",
          [&](Case &one, Interval x) {
            return one.intervals.map<arith::DivSIOp>(x, factor);
          },
          [&](Case &one, Value a) -> Value {
            return arith::DivSIOp::create(one.b, a, one.constant(factor));
          });
      prove(
          "map",
          [&](Case &one, Interval x) {
            return one.intervals.map<arith::FloorDivSIOp>(x, factor);
          },
          [&](Case &one, Value a) -> Value {
            return arith::FloorDivSIOp::create(one.b, a, one.constant(factor));
          });
      prove(
          "mapUnsigned",
          [&](Case &one, Interval x) {
            return one.intervals.mapUnsigned<arith::DivUIOp>(x, factor,
                                                             one.width);
          },
          [&](Case &one, Value a) -> Value {
            return arith::DivUIOp::create(one.b, a, one.constant(factor));
          });
      prove(
          "getRemainder",
          [&](Case &one, Interval x) {
            return one.intervals.getRemainder(x, factor, /*isUnsigned=*/false);
          },
          [&](Case &one, Value a) -> Value {
            return arith::RemSIOp::create(one.b, a, one.constant(factor));
          });
      prove(
          "getRemainder",
          [&](Case &one, Interval x) {
            return one.intervals.getRemainder(x, factor, /*isUnsigned=*/true);
          },
          [&](Case &one, Value a) -> Value {
            return arith::RemUIOp::create(one.b, a, one.constant(factor));
          });
    }
    for (int64_t shift : {0u, 1u, width / 2, width - 1}) {
      if (report.options.isQuick && shift != 1)
        continue;
      prove(
          "map",
          [&](Case &one, Interval x) {
            return one.intervals.map<arith::ShRSIOp>(x, shift);
          },
          [&](Case &one, Value a) -> Value {
            return arith::ShRSIOp::create(one.b, a, one.constant(shift));
          });
      prove(
          "mapUnsigned",
          [&](Case &one, Interval x) {
            return one.intervals.mapUnsigned<arith::ShRUIOp>(x, shift,
                                                             one.width);
          },
          [&](Case &one, Value a) -> Value {
            return arith::ShRUIOp::create(one.b, a, one.constant(shift));
          });
    }
    prove(
        "getAbs",
        [](Case &one, Interval x) {
          return one.intervals.getAbs(x, one.width);
        },
        [](Case &one, Value a) -> Value {
          return math::AbsIOp::create(one.b, a);
        });
  }
}

static void proveConversions(MLIRContext &context, Report &report) {
  for (auto [from, bits] : getWidths(report))
    for (unsigned to : {8u, 16u, 32u, 63u, 64u}) {
      if (to < from) {
        Case one(context, report, "truncate", to);
        auto [x, a] = one.addInterval(bits, from);
        one.claim(one.intervals.truncate(x, to),
                  arith::TruncIOp::create(one.b, one.b.getIntegerType(to), a));
      }
      if (to <= from)
        continue;
      Case one(context, report, "extendUnsigned", to);
      auto [x, a] = one.addInterval(bits, from);
      one.claim(one.intervals.extendUnsigned(x, from),
                arith::ExtUIOp::create(one.b, one.b.getIntegerType(to), a));
    }
  // Between index and i64, the bits are the same.
  Case same(context, report, "extendUnsigned", 64);
  auto [x, a] = same.addInterval(63);
  same.claim(same.intervals.extendUnsigned(x, 64), a);
  // A scalar of each type, and constants.
  for (unsigned width : {1u, 8u, 32u, 64u, 0u})
    for (unsigned bits : {63u, 56u, 5u}) {
      Case one(context, report, "fromScalar", width ? width : 64);
      Type type = width ? Type(one.b.getIntegerType(width))
                        : Type(one.b.getIndexType());
      if (width == 1)
        continue;
      Term x = one.encoder.declare(type, "x");
      if (bits < one.width)
        one.encoder.assume(between(number(llvm::minIntN(bits + 1)), x,
                                   number(llvm::maxIntN(bits + 1))));
      Value value = one.add(x, type);
      one.claim(one.intervals.fromScalar(value, bits), value);
      for (int64_t number : getFactors(report, one.width)) {
        Case constant(context, report, "fromScalar", one.width);
        Value known = arith::ConstantOp::create(
            constant.b, constant.b.getIntegerAttr(type, number));
        constant.claim(constant.intervals.fromScalar(known), known);
      }
    }
  Case constant(context, report, "createConstant", 64);
  Value value = constant.intervals.createConstant(-3);
  constant.claim(Interval{value, value, 63}, constant.constant(-3));
}

static void proveTruths(MLIRContext &context, Report &report) {
  for (unsigned known = 0; known < 16; ++known) {
    auto prove = [&](std::string rule, auto truth, auto value) {
      Case one(context, report, rule, 64);
      auto [x, a] = one.addTruth(known & 1, known & 2);
      auto [y, c] = one.addTruth(known & 4, known & 8);
      one.claim(truth(one, x, y), value(one, a, c));
    };
    prove(
        "both",
        [](Case &one, Truth x, Truth y) { return one.intervals.both(x, y); },
        [](Case &one, Value a, Value c) -> Value {
          return arith::AndIOp::create(one.b, a, c);
        });
    prove(
        "either",
        [](Case &one, Truth x, Truth y) { return one.intervals.either(x, y); },
        [](Case &one, Value a, Value c) -> Value {
          return arith::OrIOp::create(one.b, a, c);
        });
    prove(
        "differ",
        [](Case &one, Truth x, Truth y) { return one.intervals.differ(x, y); },
        [](Case &one, Value a, Value c) -> Value {
          return arith::XOrIOp::create(one.b, a, c);
        });
    prove(
        "negate",
        [](Case &one, Truth x, Truth) { return one.intervals.negate(x); },
        [](Case &one, Value a, Value) -> Value {
          return arith::XOrIOp::create(
              one.b, a, arith::ConstantIntOp::create(one.b, 1, 1));
        });
    prove(
        "conjoin",
        [&](Case &one, Truth x, Truth y) {
          return Truth{one.intervals.conjoin(x.isAny, y.isAny),
                       one.intervals.conjoin(x.isAll, y.isAll)};
        },
        [](Case &one, Value a, Value c) -> Value {
          return arith::AndIOp::create(one.b, a, c);
        });
    prove(
        "disjoin",
        [&](Case &one, Truth x, Truth y) {
          return Truth{one.intervals.disjoin(x.isAny, y.isAny),
                       one.intervals.disjoin(x.isAll, y.isAll)};
        },
        [](Case &one, Value a, Value c) -> Value {
          return arith::OrIOp::create(one.b, a, c);
        });
  }
  for (int64_t min : {int64_t{0}, int64_t{7}, INT64_MIN}) {
    Case one(context, report, "isAtLeast", 64);
    Value x = one.addInterval(63).second;
    Value holds = one.intervals.isAtLeast(x, min);
    one.claim(Truth{holds, holds},
              arith::CmpIOp::create(one.b, arith::CmpIPredicate::sge, x,
                                    one.constant(min)));
  }
  for (bool isFirst : {true, false}) {
    Case one(context, report, "choose", 64);
    Value x = one.addInterval(63).second, y = one.addInterval(63).second;
    Value condition = one.add(isFirst ? "true" : "false", one.b.getI1Type());
    Value chosen = one.intervals.choose(condition, x, y);
    one.claim(Interval{chosen, chosen, 63}, isFirst ? x : y);
  }
}

void mlir::posenc::proofs::proveIntervals(MLIRContext &context,
                                          Report &report) {
  // Every method of the class is a rule.
  std::string header = readSource(report.options, "lib/Transforms/Intervals.h");
  size_t begin = header.find("class IntervalBuilder"),
         end = header.find("private:", begin);
  std::string text = header.substr(begin, end - begin);
  std::regex method("(Interval|Truth|Value) (\\w+)\\(");
  for (std::sregex_iterator it(text.begin(), text.end(), method), none;
       it != none; ++it) {
    std::string name = (*it)[2];
    if (name == "compare") {
      for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i)
        report.require("compare " + arith::stringifyCmpIPredicate(
                                        static_cast<arith::CmpIPredicate>(i))
                                        .str());
      continue;
    }
    report.require(name);
  }
  proveSums(context, report);
  proveFactors(context, report);
  proveConversions(context, report);
  proveTruths(context, report);
}
