//===- FoldProofs.cpp - folders and canonicalization ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rotations are evaluated without rounding, over the integers modulo a prime: a
// pair of lanes is rotated by powers of a point of the unit circle, of which
// each pair of each frequency has its own. Two programs that agree on arbitrary
// points and lanes are equal as functions of all angles, positions and lanes: a
// polynomial of low degree that is not 0 has few zeros among 2^61 numbers.
// Every folder and pattern is run alone, on programs that differ in every
// attribute on which it depends.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/IR/Posenc.h"
#include "posenc/Reference/Bias.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <regex>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

//===----------------------------------------------------------------------===//
// Rotations without rounding
//===----------------------------------------------------------------------===//

namespace {
/// An integer modulo 2^61 - 1.
class Number {
public:
  Number(int64_t value = 0)
      : value(value < 0 ? kPrime - static_cast<uint64_t>(-value) % kPrime
                        : static_cast<uint64_t>(value) % kPrime) {}
  Number operator+(Number other) const {
    return fromWide((unsigned __int128)value + other.value);
  }
  Number operator-(Number other) const {
    return fromWide((unsigned __int128)value + kPrime - other.value);
  }
  Number operator*(Number other) const {
    return fromWide((unsigned __int128)value * other.value);
  }
  Number power(uint64_t exponent) const {
    Number result = 1, base = *this;
    for (; exponent; exponent /= 2, base = base * base)
      if (exponent % 2)
        result = result * base;
    return result;
  }
  Number invert() const { return power(kPrime - 2); }
  bool operator==(Number other) const { return value == other.value; }

  /// Returns an arbitrary number of a text.
  static Number of(const std::string &text) {
    uint64_t hash = 1469598103934665603u;
    for (int round = 0; round < 2; ++round)
      for (char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return fromWide(hash);
  }

private:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static Number fromWide(unsigned __int128 wide) {
    Number number;
    number.value = static_cast<uint64_t>(wide % kPrime);
    return number;
  }
  uint64_t value;
};

/// A rotation, which multiplies complex numbers.
struct Point {
  Number cos = 1, sin = 0;

  Point operator*(Point other) const {
    return {cos * other.cos - sin * other.sin,
            cos * other.sin + sin * other.cos};
  }
  Point power(int64_t exponent) const {
    Point result, base{cos, exponent < 0 ? Number() - sin : sin};
    for (uint64_t rest = exponent < 0 ? -exponent : exponent; rest; rest /= 2) {
      if (rest % 2)
        result = result * base;
      base = base * base;
    }
    return result;
  }
  /// Returns an arbitrary point of the unit circle.
  static Point of(const std::string &text) {
    Number t = Number::of(text), scale = (Number(1) + t * t).invert();
    return {(Number(1) - t * t) * scale, t * Number(2) * scale};
  }
};

/// The rows of a tensor of floats, and the elements of a tensor of integers.
using Rows = std::vector<std::vector<Number>>;
using Integers = std::vector<int64_t>;

/// Evaluates functions of rotations.
class Evaluator {
public:
  /// A fault of the code that is evaluated.
  Fault fault = Fault::None;

  std::vector<Rows> run(func::FuncOp function);
  /// An operation that cannot be evaluated, or empty.
  std::string error;

private:
  void evaluate(Operation &op);
  void rotate(RopeOp op);
  void convert(ConvertPairingOp op);
  void tabulate(SinusoidalOp op);
  /// The rotation of a pair by the position of a row.
  Point getRotation(FrequenciesAttr frequencies, Value positions, size_t row,
                    int64_t pair, bool isInverse);
  Number getFactor(FrequenciesAttr frequencies);

  DenseMap<Value, Rows> rows;
  DenseMap<Value, Integers> integers;
};
} // namespace

/// The number of rows, which is that of positions.
static constexpr size_t kRows = 3;

static std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

Number Evaluator::getFactor(FrequenciesAttr frequencies) {
  if (frequencies.hasUnitAttentionFactor() || fault == Fault::Check)
    return 1;
  return Number::of("factor of " + print(frequencies));
}

Point Evaluator::getRotation(FrequenciesAttr frequencies, Value positions,
                             size_t row, int64_t pair, bool isInverse) {
  const Integers &list = integers[positions];
  bool isShaped = isa<ShapedType>(positions.getType());
  int64_t position = isShaped ? list[row] : list[0] + static_cast<int64_t>(row);
  position += fault == Fault::OffByOne;
  // Sums of rounded angles, and of rounded positions, are no angles.
  bool isRounded = frequencies.roundsAngles() ||
                   isa<FloatType>(getElementTypeOrSelf(positions.getType()));
  std::string name = print(frequencies.withUnitAttentionFactor()) + " pair " +
                     std::to_string(pair);
  Point point = isRounded && position != 0
                    ? Point::of(name + " at " + std::to_string(position))
                    : Point::of(name).power(position);
  if (isInverse)
    point.sin = Number() - point.sin;
  return point;
}

/// Returns both lanes of a pair.
static std::pair<int64_t, int64_t> getLanes(Pairing pairing, int64_t dim,
                                            int64_t offset, int64_t pair) {
  if (pairing == Pairing::Half)
    return {offset + pair, offset + pair + dim / 2};
  return {offset + 2 * pair, offset + 2 * pair + 1};
}

void Evaluator::rotate(RopeOp op) {
  FrequenciesAttr frequencies = op.getFrequencies();
  bool isInverse = op.getInverse();
  Number factor = getFactor(frequencies);
  if (isInverse)
    factor = factor.invert();
  for (auto [input, result] :
       llvm::zip_equal(op.getInputs(), op.getResults())) {
    Rows values = rows[input];
    for (size_t row = 0; row < values.size(); ++row)
      for (int64_t pair = 0; pair < frequencies.getDim() / 2; ++pair) {
        auto [first, second] = getLanes(op.getPairing(), frequencies.getDim(),
                                        op.getOffset(), pair);
        Point point =
            getRotation(frequencies, op.getPositions(), row, pair, isInverse);
        Number scale = factor;
        if (op.getScale()) {
          Number xpos =
              Number::of(print(*op.getScale()) + std::to_string(pair) + " at " +
                         std::to_string(integers[op.getPositions()][0]));
          scale = scale * (isInverse ? xpos.invert() : xpos);
        }
        Point value =
            Point{values[row][first] * scale, values[row][second] * scale} *
            point;
        values[row][first] = value.cos;
        values[row][second] = value.sin;
      }
    rows[result] = values;
  }
}

void Evaluator::convert(ConvertPairingOp op) {
  Rows values = rows[op.getInput()], converted = values;
  int64_t dim = op.getDim();
  for (size_t row = 0; row < values.size(); ++row)
    for (int64_t pair = 0; pair < dim / 2; ++pair) {
      auto from = getLanes(op.getFrom(), dim, op.getOffset(), pair),
           to = getLanes(op.getTo(), dim, op.getOffset(), pair);
      converted[row][to.first] = values[row][from.first];
      converted[row][to.second] = values[row][from.second];
    }
  rows[op.getResult()] = converted;
}

void Evaluator::tabulate(SinusoidalOp op) {
  FrequenciesAttr frequencies = op.getFrequencies();
  int64_t dim = frequencies.getDim();
  Rows table(kRows, std::vector<Number>(dim));
  bool isZipped = op.getOrder() == TableOrder::Interleaved;
  for (size_t row = 0; row < kRows; ++row)
    for (int64_t pair = 0; pair < dim / 2; ++pair) {
      auto [first, second] = getLanes(
          isZipped ? Pairing::Interleaved : Pairing::Half, dim, 0, pair);
      Point point = getRotation(frequencies, op.getPositions(), row, pair,
                                /*isInverse=*/false);
      Number factor = getFactor(frequencies);
      if (op.getOrder() == TableOrder::CosSin)
        std::swap(first, second);
      table[row][first] = point.sin * factor;
      table[row][second] = point.cos * factor;
    }
  rows[op->getResult(0)] = table;
}

void Evaluator::evaluate(Operation &op) {
  if (auto rope = dyn_cast<RopeOp>(op))
    return rotate(rope);
  if (auto converted = dyn_cast<ConvertPairingOp>(op))
    return convert(converted);
  if (auto table = dyn_cast<SinusoidalOp>(op))
    return tabulate(table);
  Attribute constant;
  if (matchPattern(&op, m_Constant(&constant))) {
    Integers &values = integers[op.getResult(0)];
    if (auto list = dyn_cast<DenseIntElementsAttr>(constant))
      for (const APInt &value : list.getValues<APInt>())
        values.push_back(value.getSExtValue());
    else if (auto integer = dyn_cast<IntegerAttr>(constant))
      values.assign(kRows, integer.getValue().getSExtValue());
    if (values.size() == kRows)
      return;
  }
  Type element = getElementTypeOrSelf(op.getResult(0).getType());
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op)) {
    integers[op.getResult(0)] = integers[op.getOperand(0)];
    return;
  }
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    bool adds = isa<arith::AddIOp>(op) != (fault == Fault::MinMax);
    Integers sums;
    for (auto [a, b] : llvm::zip_equal(integers[op.getOperand(0)],
                                       integers[op.getOperand(1)])) {
      int64_t sum = adds ? a + b : a - b;
      // Sums of i32 wrap.
      sums.push_back(element.isInteger(32) ? static_cast<int32_t>(sum) : sum);
    }
    integers[op.getResult(0)] = sums;
    return;
  }
  error = "no value of " + op.getName().getStringRef().str() + " ";
}

std::vector<Rows> Evaluator::run(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    std::string name = "argument " + std::to_string(argument.getArgNumber());
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getRank() == 2) {
      Rows &values = rows[argument];
      for (size_t row = 0; row < kRows; ++row) {
        values.emplace_back();
        for (int64_t lane = 0; lane < type.getDimSize(1); ++lane)
          values.back().push_back(
              Number::of(name + std::to_string(row * 100 + lane)));
      }
      continue;
    }
    // The sum of two positions of i32 does not fit in 32 bits.
    Integers &values = integers[argument];
    bool isNarrow = getElementTypeOrSelf(argument.getType()).isInteger(32);
    for (size_t row = 0; row < kRows; ++row)
      values.push_back((isNarrow ? 2000000000 : 1000) +
                       argument.getArgNumber() * 77 + row * row * 5);
  }
  for (Operation &op : function.front().without_terminator())
    evaluate(op);
  std::vector<Rows> results;
  for (Value result : function.front().getTerminator()->getOperands())
    results.push_back(rows[result]);
  return results;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {
/// The patterns that operations register, one in each set, and their names.
class Rules {
public:
  Rules(MLIRContext &context, Report &report);
  /// Applies each rule alone to a program.
  void prove(const std::string &text);

private:
  void prove(const std::string &text, const std::string &rule,
             const FrozenRewritePatternSet &patterns, bool folds);

  MLIRContext &context;
  Report &report;
  std::vector<std::pair<std::string, FrozenRewritePatternSet>> rules;
};
} // namespace

Rules::Rules(MLIRContext &context, Report &report)
    : context(context), report(report) {
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() != "posenc")
      continue;
    RewritePatternSet patterns(&context);
    name.getCanonicalizationPatterns(patterns, &context);
    unsigned number = 0;
    for (std::unique_ptr<RewritePattern> &pattern :
         patterns.getNativePatterns()) {
      std::string rule =
          name.getStringRef().str() + " pattern " + std::to_string(++number);
      report.require(rule);
      RewritePatternSet one(&context);
      one.add(std::move(pattern));
      rules.emplace_back(rule, std::move(one));
    }
  }
}

/// Prints the operations of the dialect, without positions that moved.
static std::string printOps(func::FuncOp function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation &op : function.front())
    if (isa<PosencDialect>(op.getDialect()))
      stream << op.getName() << op.getAttrDictionary() << op.getNumOperands();
  return text;
}

void Rules::prove(const std::string &text, const std::string &rule,
                  const FrozenRewritePatternSet &patterns, bool folds) {
  OwningOpRef<ModuleOp> before = parse(context, text),
                        after = parse(context, text);
  auto from = *before->getOps<func::FuncOp>().begin(),
       to = *after->getOps<func::FuncOp>().begin();
  GreedyRewriteConfig config;
  config.enableFolding(folds);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  (void)applyPatternsGreedily(to, patterns, config);
  if (OperationEquivalence::isEquivalentTo(
          from, to, OperationEquivalence::IgnoreLocations))
    return;
  Evaluator first, second;
  // A fault of what the rule left as it was would be no fault of the rule.
  bool isSame = printOps(from) == printOps(to);
  second.fault = isSame ? Fault::None : report.options.fault;
  bool areEqual = first.run(from) == second.run(to) && first.error.empty() &&
                  second.error.empty();
  if (isSame && areEqual)
    return;
  std::string name = rule;
  if (folds) {
    auto count = [](func::FuncOp function, auto kind) {
      return llvm::range_size(function.front().getOps<decltype(kind)>());
    };
    name = count(from, RopeOp()) != count(to, RopeOp())
               ? "posenc.rope folder"
               : "posenc.convert_pairing folder";
  }
  report.check(name, areEqual,
               [&] { return first.error + second.error + "in\n" + text; });
}

void Rules::prove(const std::string &text) {
  for (const auto &[rule, patterns] : rules)
    prove(text, rule, patterns, /*folds=*/false);
  prove(text, "", RewritePatternSet(&context), /*folds=*/true);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static constexpr const char *kArguments =
    "%x: tensor<3x12xf32>, %y: tensor<3x12xf32>, %p: tensor<3xi64>, "
    "%q: tensor<3xi64>, %n: tensor<3xi32>, %s: i64, %i: tensor<3xindex>, "
    "%f: tensor<3xf32>, %t: tensor<3x8xf32>";

namespace {
/// The attributes and positions of a rope.
struct Rope {
  std::string pairing, inverse, frequencies, scale, positions, offset;

  std::string print(const std::string &result, const std::string &inputs,
                    const std::string &outs, size_t count,
                    const std::string &type) const {
    std::string types = type;
    for (size_t i = 1; i < count; ++i)
      types += ", " + type;
    return result + " = posenc.rope " + pairing + " " + inverse + " " +
           frequencies + " " + scale + " ins(" + inputs + " : " + types +
           ") positions(" + positions + ") dims = [0]" + offset + " outs(" +
           outs + " : " + types + ")\n";
  }
};
} // namespace

static std::string getProgram(const std::string &body,
                              const std::string &results,
                              const std::string &types) {
  // A constant that is not used would be erased, as no rule of the dialect
  // does.
  bool usesZeros = body.find("%z") != std::string::npos;
  return std::string("func.func @f(") + kArguments + ") -> (" + types +
         ") {\n" +
         (usesZeros ? "%z = arith.constant dense<0> : tensor<3xi64>\n" : "") +
         body + "return " + results + " : " + types + "\n}\n";
}

/// Programs of two ropes, of which one attribute at most differs.
static void proveRopes(Rules &rules, const Report &report) {
  const std::string type = "tensor<3x12xf32>";
  std::vector<std::string> frequencies{
      "#posenc.frequencies<dim = 8>",
      "#posenc.frequencies<dim = 8, scaling = #posenc.yarn<factor = 4.0, "
      "original_max_position = 4096.0>>",
      "#posenc.frequencies<dim = 8, precision = hf_f32>"};
  std::vector<std::string> scales{
      "", "scale #posenc.xpos<base = 512.0, gamma = 0.4>"};
  std::vector<std::string> positions{
      "%p : tensor<3xi64>", "%q : tensor<3xi64>",   "%n : tensor<3xi32>",
      "%s : i64",           "%i : tensor<3xindex>", "%f : tensor<3xf32>",
      "%z : tensor<3xi64>"};
  std::vector<std::string> pairings{"half", "interleaved"},
      offsets{"", " offset = 4"}, inverses{"", "inverse"};
  if (report.options.isQuick) {
    positions = {"%p : tensor<3xi64>", "%n : tensor<3xi32>",
                 "%z : tensor<3xi64>"};
    pairings.resize(1);
    offsets.resize(1);
  }
  auto forEach = [&](auto visit) {
    for (const std::string &pairing : pairings)
      for (const std::string &frequency : frequencies)
        for (const std::string &scale : scales)
          for (const std::string &offset : offsets)
            visit(Rope{pairing, "", frequency, scale, "", offset});
  };
  forEach([&](Rope first) {
    // The second rope is the same, or has another attribute.
    std::vector<Rope> others{first};
    forEach([&](const Rope &other) {
      int numOther = (other.pairing != first.pairing) +
                     (other.frequencies != first.frequencies) +
                     (other.scale != first.scale) +
                     (other.offset != first.offset);
      if (numOther == 1)
        others.push_back(other);
    });
    for (Rope second : others)
      for (const std::string &a : positions)
        for (const std::string &b : positions)
          for (unsigned inverse = 0; inverse < 4; ++inverse) {
            first.positions = a;
            second.positions = b;
            first.inverse = inverses[inverse & 1];
            second.inverse = inverses[inverse >> 1];
            rules.prove(getProgram(first.print("%a", "%x", "%x", 1, type) +
                                       second.print("%b", "%a", "%a", 1, type),
                                   "%b", type));
          }
    // Two tensors: in order, exchanged, one of them with another user, or of
    // which one is not used.
    first.positions = positions[0];
    Rope second = first;
    second.inverse = "inverse";
    second.positions = positions[1];
    std::string both = first.print("%a:2", "%x, %y", "%x, %y", 2, type);
    for (const char *inputs : {"%a#0, %a#1", "%a#1, %a#0", "%a#0, %x"}) {
      std::string body =
          both + second.print("%b:2", inputs, "%a#0, %a#1", 2, type);
      for (const char *results : {"%b#0, %b#1", "%b#1, %a#0", "%b#0, %b#0"})
        rules.prove(getProgram(body, results, type + ", " + type));
      rules.prove(getProgram(body, "%b#1", type));
    }
  });
}

/// Rotations of rows of a table, and conversions around ropes.
static void proveTables(Rules &rules) {
  const std::string type = "tensor<3x8xf32>";
  std::vector<std::string> frequencies{"<dim = 8>", "<dim = 8, base = 500.0>",
                                       "<dim = 8, precision = hf_f32>"};
  for (const char *order : {"interleaved", "sin_cos", "cos_sin"})
    for (const std::string &ofTable : frequencies)
      for (const std::string &ofRope : frequencies)
        for (const char *pairing : {"half", "interleaved"})
          for (const char *inverse : {"", "inverse"})
            for (const char *positions :
                 {"%p : tensor<3xi64>", "%n : tensor<3xi32>", "%s : i64",
                  "%f : tensor<3xf32>"}) {
              Rope rope{pairing,
                        inverse,
                        "#posenc.frequencies" + ofRope,
                        "",
                        "%q : tensor<3xi64>",
                        ""};
              rules.prove(getProgram(std::string("%a = posenc.sinusoidal ") +
                                         order + " #posenc.frequencies" +
                                         ofTable + " positions(" + positions +
                                         ") outs(%t : " + type + ")\n" +
                                         rope.print("%b", "%a", "%t", 1, type),
                                     "%b", type));
            }
  std::vector<std::string> pairings{"half", "interleaved"};
  const std::string wide = "tensor<3x12xf32>";
  for (const char *window : {"dim = 8", "dim = 8 offset = 4", "dim = 4"})
    for (const std::string &a : pairings)
      for (const std::string &b : pairings) {
        auto convert = [&](const std::string &result, const std::string &input,
                           const std::string &from, const std::string &to,
                           const std::string &where) {
          return result + " = posenc.convert_pairing " + from + " to " + to +
                 " " + where + " " + input + " : " + wide + "\n";
        };
        std::string first = convert("%a", "%x", a, b, window);
        for (const std::string &c : pairings)
          for (const std::string &d : pairings)
            for (const char *other : {"dim = 8", "dim = 8 offset = 4"})
              rules.prove(getProgram(first + convert("%b", "%a", c, d, other),
                                     "%b", wide));
        for (const std::string &pairing : pairings)
          for (const char *offset : {"", " offset = 4"})
            for (const char *inverse : {"", "inverse"}) {
              Rope rope{pairing,
                        inverse,
                        "#posenc.frequencies<dim = 8>",
                        "",
                        "%p : tensor<3xi64>",
                        offset};
              rules.prove(getProgram(
                  first + rope.print("%b", "%a", "%a", 1, wide), "%b", wide));
              rules.prove(getProgram(
                  first + convert("%c", "%y", b, a, window) +
                      rope.print("%b:2", "%a, %c", "%a, %y", 2, wide),
                  "%b#0, %b#1", wide + ", " + wide));
            }
      }
}

//===----------------------------------------------------------------------===//
// Biases
//===----------------------------------------------------------------------===//

static void proveBiases(MLIRContext &context, Report &report) {
  int64_t wrong = report.options.fault == Fault::OffByOne;
  Builder b(&context);
  int64_t most = report.options.isQuick ? 5 : 40;
  auto module = parse(context, R"(
func.func @f(%h: index, %q: index, %k: index) -> f32 {
  %r = posenc.alibi(%h, %q, %k) heads = 3 : f32
  return %r : f32
})");
  AlibiOp alibi;
  module->walk([&](AlibiOp op) { alibi = op; });
  for (int64_t heads = 1; heads <= most; ++heads) {
    alibi.setHeads(heads);
    for (int64_t head = -1; head <= heads; ++head)
      for (int64_t query : {int64_t{0}, int64_t{7}, int64_t{1} << 40})
        for (int64_t distance = -most; distance <= most; ++distance) {
          Attribute operands[] = {b.getIndexAttr(head), b.getIndexAttr(query),
                                  b.getIndexAttr(query - distance)};
          SmallVector<OpFoldResult> results;
          bool folds = succeeded(alibi->fold(operands, results));
          bool isHead = head >= 0 && head < heads;
          float expected =
              isHead ? -static_cast<float>(
                           ::posenc::reference::alibiSlope(head, heads)) *
                           static_cast<float>(std::abs(distance + wrong))
                     : 0;
          report.check(
              "posenc.alibi folder",
              folds == isHead &&
                  (!folds || cast<FloatAttr>(cast<Attribute>(results[0]))
                                     .getValue()
                                     .convertToFloat() == expected),
              [&] {
                return "of head " + std::to_string(head) + " of " +
                       std::to_string(heads) + " at " +
                       std::to_string(distance);
              });
        }
  }
  for (bool isBidirectional : {false, true})
    for (int64_t buckets : {4, 6, 8, 32})
      for (int64_t max : {17, 20, 128}) {
        auto parsed =
            parse(context, llvm::formatv(R"(
func.func @f(%r: index) -> index {{
  %b = posenc.t5_bucket {0} %r buckets = {1} max_distance = {2} : index
  return %b : index
})",
                                         isBidirectional ? "bidirectional" : "",
                                         buckets, max)
                               .str());
        T5BucketOp bucket;
        parsed->walk([&](T5BucketOp op) { bucket = op; });
        ::posenc::reference::T5Buckets spec{buckets, max, isBidirectional};
        int64_t far = report.options.isQuick ? 40 : 300;
        for (int64_t relative = -far; relative <= far; ++relative) {
          Attribute operand = b.getIndexAttr(relative);
          SmallVector<OpFoldResult> results;
          if (failed(bucket->fold(operand, results)))
            continue;
          int64_t folded =
              cast<IntegerAttr>(cast<Attribute>(results[0])).getInt();
          report.check(
              "posenc.t5_bucket folder",
              folded == ::posenc::reference::t5Bucket(relative - wrong, spec),
              [&] {
                return "of " + std::to_string(relative) + " is " +
                       std::to_string(folded);
              });
        }
      }
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Returns what is cast.
static Value skipCasts(Value value) {
  while (auto cast = value.getDefiningOp<tensor::CastOp>())
    value = cast.getSource();
  return value;
}

/// Casts of each operand of an attention, whose fold must read the same values
/// with the same attributes.
static void proveCasts(MLIRContext &context, Report &report) {
  const char *programs[] = {R"(
!any = tensor<?x?x2x8xf32>
!q = tensor<1x5x2x8xf32>
!k = tensor<1x6x2x8xf32>
func.func @f(%q: !q, %k: !k, %o: !q) -> !any {
  %0 = tensor.cast %q : !q to !any
  %1 = tensor.cast %k : !k to !any
  %2 = tensor.cast %o : !q to !any
  %r = posenc.attention causal window_left = 3
    ins(%0, %1, %1 : !any, !any, !any) outs(%2 : !any)
  return %r : !any
})",
                            R"(
!any = tensor<?x8xf32>
!q = tensor<2x3x8xf32>
!m = tensor<2x3xf32>
func.func @f(%q: !q, %k: tensor<4x8xf32>, %m: !m, %i: index) -> !q {
  %1 = tensor.cast %k : tensor<4x8xf32> to !any
  %r:3 = posenc.online_attention causal at(%i, %i, %i, %i)
    ins(%q, %1, %1 : !q, !any, !any) outs(%q, %m, %m : !q, !m, !m)
  return %r#0 : !q
})"};
  for (const char *program : programs) {
    OwningOpRef<ModuleOp> before = parse(context, program),
                          after = parse(context, program);
    RewritePatternSet patterns(&context);
    AttentionOp::getCanonicalizationPatterns(patterns, &context);
    OnlineAttentionOp::getCanonicalizationPatterns(patterns, &context);
    (void)applyPatternsGreedily(*after, std::move(patterns));
    auto find = [](ModuleOp module) {
      Operation *found = nullptr;
      module.walk([&](Operation *op) {
        if (isa<AttentionOp, OnlineAttentionOp>(op))
          found = op;
      });
      return found;
    };
    Operation *from = find(*before), *to = find(*after);
    bool isSame = from->getAttrDictionary() == to->getAttrDictionary();
    bool isChanged = false;
    // A fault: the operands are those that follow.
    unsigned numOperands = to->getNumOperands();
    isSame &= from->getNumOperands() == numOperands;
    for (auto [i, a] : llvm::enumerate(from->getOperands())) {
      Value b = to->getOperand((i + (report.options.fault != Fault::None)) %
                               numOperands);
      auto source = dyn_cast<BlockArgument>(skipCasts(a)),
           target = dyn_cast<BlockArgument>(skipCasts(b));
      isSame &=
          source && target && source.getArgNumber() == target.getArgNumber();
      isChanged |= isa<BlockArgument>(b) && !isa<BlockArgument>(a);
    }
    report.check(from->getName().getStringRef().str() + " pattern 1",
                 isSame && isChanged && succeeded(after->verify()),
                 [&] { return std::string("of casts"); });
  }
}

/// Requires the folders that operations have by their definition, or by that of
/// their class.
static void requireFolders(Report &report) {
  unsigned numOfOperations = 0;
  std::set<std::string> classes;
  std::map<std::string, std::string> classOfOperation;
  std::error_code code;
  std::string folder = report.options.source + "/dialect/posenc/IR";
  for (llvm::sys::fs::directory_iterator it(folder, code), end;
       it != end && !code; it.increment(code)) {
    StringRef file = llvm::sys::path::filename(it->path());
    if (!file.ends_with(".td"))
      continue;
    std::string text =
        readSource(report.options, "dialect/posenc/IR/" + file.str());
    std::regex item("(?:^|\n)(class|def) (\\w+)|: *(\\w+)<(?:\\w+, "
                    ")?\"(\\w+)\"|let hasFolder = 1");
    std::string kind, name, mnemonic;
    for (std::sregex_iterator at(text.begin(), text.end(), item), last;
         at != last; ++at) {
      if ((*at)[1].matched) {
        kind = (*at)[1];
        name = (*at)[2];
        mnemonic = "";
      } else if ((*at)[4].matched) {
        mnemonic = (*at)[4];
        classOfOperation[mnemonic] = (*at)[3];
      } else if (kind == "class") {
        classes.insert(name);
      } else {
        report.require("posenc." + mnemonic + " folder");
        ++numOfOperations;
      }
    }
  }
  unsigned numOfClasses = 0;
  for (const auto &[operation, type] : classOfOperation)
    if (classes.count(type)) {
      report.require("posenc." + operation + " folder");
      ++numOfClasses;
    }
  // Another spelling of the sources must not leave out folders in silence.
  if (!numOfOperations || !numOfClasses)
    report.require("folders in " + folder);
}

void mlir::posenc::proofs::proveFolds(MLIRContext &context, Report &report) {
  requireFolders(report);
  Rules rules(context, report);
  proveRopes(rules, report);
  proveTables(rules);
  proveBiases(context, report);
  proveCasts(context, report);
}
