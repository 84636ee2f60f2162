//===- SizeProofs.cpp - the arithmetic of sizes ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Polynomials and terms are built by SizeExpr and SizeSymbols from all of a
// family of operands, and evaluated for all small values of their symbols.
// Simplified ones must have the value of their definition, and what is claimed
// of an expression, such as its sign, must hold for all values. Operations of
// functions must have the value that the folders of arith compute.
//
//===----------------------------------------------------------------------===//

#include "Proofs.h"

#include "posenc/ABI/SizeAnalysis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::proofs;

using Values = std::vector<int64_t>;

namespace {
/// Symbols: two sizes, a scalar of any sign, an element, and the variable of a
/// loop from the scalar to the first size.
struct Family {
  Family() {
    x = symbols.createSize(0, 0);
    y = symbols.createSize(0, 1);
    a = symbols.createScalar(1);
    e = symbols.createElement(2);
    i = symbols.createLoop(a, x);
    numSymbols = *i.getSymbol() + 1;
  }
  /// Returns all values of the symbols, small sizes and signed numbers.
  std::vector<Values> getValues(const Report &report) const {
    // A fault: sizes may be negative, so that no sign is known.
    bool isWrong = report.options.fault == Fault::Check;
    Values sizes{0, 1, 2, 3, 5}, numbers{-3, -1, 0, 1, 2};
    if (report.options.isQuick)
      sizes = {0, 1, 3}, numbers = {-2, 0, 1};
    if (isWrong)
      sizes.push_back(-2);
    std::vector<Values> all;
    for (int64_t first : sizes)
      for (int64_t second : sizes)
        for (int64_t scalar : numbers)
          for (int64_t element : {-2, 1}) {
            // The variable of an empty loop has no value.
            int64_t loop = scalar;
            do
              all.push_back({first, second, scalar, element, loop});
            while (++loop <= first);
          }
    return all;
  }
  std::vector<SizeExpr> getOperands(const Report &report) const {
    std::vector<SizeExpr> all{-2, 0, 1, 3, x, y, a, x + 1, x - y, a + a + 1};
    if (!report.options.isQuick)
      for (const SizeExpr &more :
           {e, i, x * y, x * SizeExpr(3), x * SizeExpr(3) + 3, y - a, x - i,
            SizeExpr(0) - x, x * x - x, a * SizeExpr(2)})
        all.push_back(more);
    return all;
  }

  SizeSymbols symbols;
  SizeExpr x, y, a, e, i;
  unsigned numSymbols;
};
} // namespace

static std::string print(const Values &values) {
  std::string text;
  for (int64_t value : values)
    text += " " + std::to_string(value);
  return text;
}

/// The value of a term by its definition; nullopt where it has none. A fault:
/// minima are maxima, or one more.
static std::optional<int64_t> evaluate(const Report &report, TermKind kind,
                                       ArrayRef<int64_t> x) {
  Fault fault = report.options.fault;
  switch (kind) {
  case TermKind::Value:
    return x[0];
  case TermKind::Quotient:
    return x[1] > 0 ? std::optional(llvm::divideFloorSigned(x[0], x[1]))
                    : std::nullopt;
  case TermKind::Remainder:
    if (x[1] <= 0)
      return std::nullopt;
    return ((x[0] % x[1]) + x[1]) % x[1];
  case TermKind::Min:
    if (fault == Fault::MinMax)
      return std::max(x[0], x[1]);
    return std::min(x[0], x[1]) + (fault == Fault::OffByOne);
  case TermKind::Max:
    return std::max(x[0], x[1]);
  case TermKind::IfLess:
    return x[0] < x[1] ? x[2] : x[3];
  case TermKind::IfEqual:
    return x[0] == x[1] ? x[2] : x[3];
  }
  return std::nullopt;
}

/// The value of an expression; nullopt where a divisor is not positive, and for
/// the variable of a loop that is empty.
static std::optional<int64_t> evaluate(const Report &report,
                                       const SizeSymbols &symbols,
                                       const SizeExpr &expr,
                                       const Values &values) {
  int64_t sum = 0;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    int64_t product = coefficient;
    for (unsigned number : monomial) {
      const SizeSymbol &symbol = symbols.get(number);
      std::optional<int64_t> factor;
      if (symbol.kind != SizeSymbol::Kind::Term) {
        factor = values[number];
        if (symbol.kind == SizeSymbol::Kind::Loop) {
          auto low = evaluate(report, symbols, symbol.range->first, values),
               high = evaluate(report, symbols, symbol.range->second, values);
          if (!low || !high || *factor < *low || *high < *factor)
            return std::nullopt;
        }
      } else {
        SmallVector<int64_t> operands;
        for (const SizeExpr &operand : symbol.operands) {
          std::optional<int64_t> value =
              evaluate(report, symbols, operand, values);
          if (!value)
            return std::nullopt;
          operands.push_back(*value);
        }
        factor = evaluate(report, symbol.term, operands);
      }
      if (!factor)
        return std::nullopt;
      product *= *factor;
    }
    sum += product;
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

/// Polynomials of two symbols, of degree 2 at most, with small coefficients.
static std::vector<SizeExpr> getPolynomials(const Report &report) {
  SizeExpr x = SizeExpr::symbol(0), y = SizeExpr::symbol(1);
  std::vector<SizeExpr> all;
  Values some{-1, 0, 2};
  if (!report.options.isQuick)
    some = {-2, -1, 0, 1, 3};
  for (int64_t one : some)
    for (int64_t left : some)
      for (int64_t right : some)
        for (int64_t both : {0, 1, -2})
          all.push_back(x * left + y * right + x * y * SizeExpr(both) + one);
  all.push_back(x * x - y * y);
  return all;
}

static int64_t evaluate(const SizeExpr &expr, int64_t x, int64_t y) {
  int64_t sum = 0;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    int64_t product = coefficient;
    for (unsigned symbol : monomial)
      product *= symbol ? y : x;
    sum += product;
  }
  return sum;
}

static std::string print(const SizeExpr &expr) {
  std::string text = expr.isValid() ? "" : "invalid";
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    text += (text.empty() ? "" : " + ") + std::to_string(coefficient);
    for (unsigned symbol : monomial)
      text += symbol ? "*y" : "*x";
  }
  return text.empty() ? "0" : text;
}

static void provePolynomials(Report &report) {
  std::vector<SizeExpr> all = getPolynomials(report);
  int64_t wrong = report.options.fault == Fault::OffByOne;
  for (const SizeExpr &p : all)
    for (const SizeExpr &q : all) {
      SizeExpr sum = p + q, difference = p - q, product = p * q;
      // A polynomial is 0 if it is at more points than its degree.
      bool areEqual = true, isSum = true, isDifference = true, isProduct = true;
      for (int64_t x : {-2, 0, 1, 3, 4})
        for (int64_t y : {-2, 0, 1, 3, 4}) {
          int64_t a = evaluate(p, x, y), b = evaluate(q, x, y);
          areEqual &= a == b;
          isSum &= evaluate(sum, x, y) + wrong == a + b;
          isDifference &= evaluate(difference, x, y) == a - b;
          isProduct &= evaluate(product, x, y) == a * b;
        }
      auto explain = [&] { return "of " + print(p) + " and " + print(q); };
      report.check("SizeExpr +", isSum, explain);
      report.check("SizeExpr -", isDifference, explain);
      report.check("SizeExpr *", isProduct, explain);
      report.check("SizeExpr ==", areEqual == (p == q), explain);
      report.check("SizeExpr <",
                   !(p < q && q < p) && (p == q) == (!(p < q) && !(q < p)),
                   explain);
      if (q != SizeExpr(0))
        report.check("divideExactly", product.divideExactly(q) == p, explain);
      if (std::optional<SizeExpr> quotient = p.divideExactly(q))
        report.check("divideExactly", *quotient * q == p, explain);
    }
  for (const SizeExpr &p : all) {
    int64_t divisor = p.getDivisor();
    bool divides = true, isNonNegative = true;
    for (const auto &[monomial, coefficient] : p.getTerms()) {
      divides &= divisor > 0 && coefficient % divisor == 0;
      isNonNegative &= coefficient >= 0;
    }
    report.check("getDivisor",
                 divides && (divisor == 0) == p.getTerms().empty(),
                 [] { return "of a polynomial"; });
    report.check("hasNoNegative", p.hasNoNegative([](unsigned) {
      return true;
    }) == isNonNegative,
                 [] { return "of a polynomial"; });
  }
  // Sums and products that overflow are invalid, others are exact.
  Values ends{0,
              1,
              -1,
              2,
              -2,
              INT64_MAX,
              INT64_MIN,
              INT64_MAX / 2,
              INT64_MIN / 2,
              int64_t{1} << 32};
  for (int64_t left : ends)
    for (int64_t right : ends)
      for (bool isSum : {true, false}) {
        SizeExpr x = SizeExpr::symbol(0);
        SizeExpr result =
            isSum ? x * left + x * right : (x * left) * SizeExpr(right);
        __int128 exact =
            isSum ? __int128(left) + right : __int128(left) * right;
        bool fits = exact == __int128(int64_t(exact));
        if (report.options.fault == Fault::Check)
          fits = true;
        report.check("overflow of coefficients",
                     result.isValid() == fits &&
                         (!fits || result == x * int64_t(exact)),
                     [&] { return print({left, right}); });
        if (isSum || !right)
          continue;
        std::optional<SizeExpr> quotient =
            (x * left).divideExactly(SizeExpr(right));
        // The lowest number has no quotient, as its negation overflows.
        bool isExact = left != INT64_MIN && left % right == 0;
        report.check("overflow of coefficients",
                     quotient.has_value() == isExact &&
                         (!isExact || *quotient == x * (left / right)),
                     [&] { return print({left, right}); });
      }
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// Checks what is claimed of an expression: its sign, bounds, and what
/// follows from parts of it.
static void checkClaims(Report &report, Family &family, const SizeExpr &expr,
                        const std::vector<Values> &all) {
  SizeSymbols &symbols = family.symbols;
  bool isNonNegative = symbols.isNonNegative(expr);
  bool isAtMostZero = symbols.isAtMostZero(expr);
  std::optional<SizeExpr> max = symbols.maximize(expr);
  SmallVector<SizeExpr> cases = symbols.splitCases(expr);
  std::optional<SizeExpr> condition =
      symbols.findCondition({expr}, /*usesElements=*/false);
  for (const Values &values : all) {
    std::optional<int64_t> value = evaluate(report, symbols, expr, values);
    if (!value)
      continue;
    auto explain = [&] {
      return "of " + std::to_string(*value) + " for" + print(values);
    };
    auto getValue = [&](const SizeExpr &other) {
      return evaluate(report, symbols, other, values);
    };
    if (isNonNegative)
      report.check("isNonNegative", *value >= 0, explain);
    if (isAtMostZero)
      report.check("isAtMostZero", *value <= 0, explain);
    if (max)
      if (std::optional<int64_t> bound = getValue(*max))
        report.check("maximize", *value <= *bound, explain);
    if (!cases.empty()) {
      bool areAll = llvm::all_of(cases, [&](const SizeExpr &one) {
        return getValue(one).value_or(1) <= 0;
      });
      report.check("splitCases", !areAll || *value <= 0, explain);
    }
    if (condition)
      report.check("findCondition",
                   getValue(*condition).value_or(1) > 0 || *value <= 0,
                   explain);
  }
}

static void proveTerms(Report &report) {
  for (unsigned number = 0; number <= getMaxEnumValForTermKind(); ++number) {
    TermKind kind = static_cast<TermKind>(number);
    Family family;
    std::vector<SizeExpr> operands = family.getOperands(report);
    std::vector<Values> all = family.getValues(report);
    bool isChoice = kind == TermKind::IfLess || kind == TermKind::IfEqual;
    std::string rule = "createTerm " + stringifyTermKind(kind).str();
    report.require(rule);
    for (const SizeExpr &left : operands)
      for (const SizeExpr &right : operands)
        for (unsigned choice = 0; choice < (isChoice ? 3 : 1); ++choice) {
          std::vector<SizeExpr> list{left, right};
          if (isChoice) {
            list.push_back(choice ? family.x : family.a);
            list.push_back(choice == 1 ? family.x : family.y);
          }
          SizeExpr term = family.symbols.createTerm(kind, list);
          if (!term.isValid())
            continue;
          // A simplification has the value of its definition.
          for (const Values &values : all) {
            SmallVector<int64_t> numbers;
            for (const SizeExpr &operand : list)
              if (auto number =
                      evaluate(report, family.symbols, operand, values))
                numbers.push_back(*number);
            if (numbers.size() != list.size())
              continue;
            std::optional<int64_t> expected = evaluate(report, kind, numbers);
            std::optional<int64_t> value =
                evaluate(report, family.symbols, term, values);
            if (expected)
              report.check(rule, value == expected, [&] {
                return "for" + print(values) + " is " +
                       std::to_string(value.value_or(-999));
              });
          }
          for (const SizeExpr &expr :
               {term, SizeExpr(0) - term, term - family.x, family.i - term,
                term * SizeExpr(3) - family.x})
            checkClaims(report, family, expr, all);
        }
  }
}

/// Symbols that are equal, and symbols that are constants.
static void proveResolve(Report &report) {
  for (unsigned number = 1; number <= getMaxEnumValForTermKind(); ++number)
    for (bool usesConstants : {false, true}) {
      TermKind kind = static_cast<TermKind>(number);
      Family family;
      std::vector<std::pair<SizeExpr, SizeExpr>> resolved;
      for (const SizeExpr &left : family.getOperands(report)) {
        std::vector<SizeExpr> list{left, family.y};
        if (number >= static_cast<unsigned>(TermKind::IfLess))
          list.insert(list.end(), {family.x, family.a});
        resolved.emplace_back(family.symbols.createTerm(kind, list) + family.y,
                              SizeExpr());
      }
      family.symbols.unite(*family.x.getSymbol(), *family.y.getSymbol());
      family.symbols.setConstant(*family.y.getSymbol(), 3);
      for (auto &[from, to] : resolved)
        to = family.symbols.resolve(from, usesConstants);
      for (const Values &values : family.getValues(report)) {
        bool isWrong = report.options.fault == Fault::Check;
        if (!isWrong &&
            (values[0] != values[1] || (usesConstants && values[0] != 3)))
          continue;
        for (const auto &[from, to] : resolved) {
          std::optional<int64_t> value =
              evaluate(report, family.symbols, from, values);
          if (value && to.isValid())
            report.check("resolve",
                         evaluate(report, family.symbols, to, values) == value,
                         [&] { return "for" + print(values); });
        }
      }
    }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Computes an operation on constants by its folder.
static std::optional<int64_t> fold(Operation *op, ArrayRef<int64_t> values) {
  Builder builder(op->getContext());
  SmallVector<Attribute> operands;
  for (auto [type, value] : llvm::zip_equal(op->getOperandTypes(), values))
    operands.push_back(builder.getIntegerAttr(
        type, APInt(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), value,
                    /*isSigned=*/true, /*implicitTrunc=*/true)));
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.empty())
    return std::nullopt;
  if (auto value = dyn_cast<Value>(results.front())) {
    for (auto [operand, number] : llvm::zip_equal(op->getOperands(), values))
      if (operand == value)
        return number;
    return std::nullopt;
  }
  auto number = dyn_cast<IntegerAttr>(cast<Attribute>(results.front()));
  if (!number)
    return std::nullopt;
  return number.getType().isInteger(1) ? number.getValue().getZExtValue()
                                       : number.getValue().getSExtValue();
}

/// Tries an operation on sizes, scalars and constants, which are numbered as
/// the symbols of the analysis. Claims its value if the analysis knows it.
static void tryOperation(MLIRContext &context, Report &report, StringRef name,
                         ArrayRef<unsigned> operands, Type operandType,
                         Type resultType, std::optional<int64_t> predicate) {
  OwningOpRef<ModuleOp> module = parse(context, R"(
func.func @f(%t: tensor<?x?xf32>, %a: index, %b: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = tensor.dim %t, %c0 : tensor<?x?xf32>
  %y = tensor.dim %t, %c1 : tensor<?x?xf32>
  %m = arith.constant -2 : index
  %p = arith.constant 3 : index
  return
})");
  auto function = *module->getOps<func::FuncOp>().begin();
  Block &block = function.front();
  // Symbols 0 to 3, and two constants.
  SmallVector<Value> values{};
  auto at = [&](unsigned i) {
    return std::next(block.begin(), i)->getResult(0);
  };
  values = {at(2), at(3), block.getArgument(1), block.getArgument(2),
            at(4), at(5)};
  OpBuilder b(block.getTerminator());
  OperationState state(function.getLoc(), name);
  for (unsigned operand : operands) {
    Value value = values[operand];
    if (operandType != value.getType())
      value =
          arith::IndexCastOp::create(b, function.getLoc(), operandType, value);
    state.addOperands(value);
  }
  state.addTypes(resultType);
  if (predicate)
    state.addAttribute("predicate", b.getI64IntegerAttr(*predicate));
  Operation *op = b.create(state);
  if (failed(verify(op)))
    return;
  bool isCondition = predicate.has_value();
  Value result = op->getResult(0);
  if (isCondition)
    result = arith::SelectOp::create(b, function.getLoc(), result, values[2],
                                     values[0]);
  SizeAnalysis analysis(function);
  if (failed(analysis.runPartially()))
    return;
  SizeExpr expr = analysis.getInteger(result);
  if (!expr.isValid() || !analysis.getSymbols().isComputable(expr))
    return;
  std::string rule =
      name.str() +
      (predicate ? " " + arith::stringifyCmpIPredicate(
                             static_cast<arith::CmpIPredicate>(*predicate))
                             .str()
                 : "");
  std::optional<bool> truth =
      isCondition ? analysis.getTruth(op->getResult(0)) : std::nullopt;
  Values sizes{0, 1, 2, 3}, scalars{-3, -1, 0, 1, 2};
  if (report.options.fault == Fault::Check)
    sizes.push_back(-1);
  for (int64_t x : sizes)
    for (int64_t y : sizes)
      for (int64_t a : scalars)
        for (int64_t c : scalars) {
          Values all{x, y, a, c, -2, 3};
          Values numbers;
          for (unsigned operand : operands)
            numbers.push_back(all[operand]);
          std::optional<int64_t> expected = fold(op, numbers);
          if (!expected)
            continue;
          // Divisors are required to be positive.
          if (name.contains("div") || name.contains("rem"))
            if (numbers[1] <= 0)
              continue;
          if (truth)
            report.check("getTruth", *truth == (*expected != 0),
                         [&] { return rule + " for" + print(all); });
          if (isCondition)
            expected = *expected ? a : x;
          std::optional<int64_t> value =
              evaluate(report, analysis.getSymbols(), expr, all);
          report.check(rule, value == expected, [&] {
            return "for" + print(all) + " is " +
                   std::to_string(value.value_or(-999)) + ", expected " +
                   std::to_string(*expected);
          });
        }
}

static void proveOperations(MLIRContext &context, Report &report) {
  Builder builder(&context);
  Type index = builder.getIndexType();
  std::vector<unsigned> some{0, 1, 2, 3, 4, 5};
  if (report.options.isQuick)
    some = {0, 2, 5};
  for (RegisteredOperationName info : context.getRegisteredOperations()) {
    StringRef name = info.getStringRef();
    if (!name.starts_with("arith.") || name == "arith.constant" ||
        name == "arith.cmpi" || name == "arith.cmpf")
      continue;
    for (unsigned left : some) {
      for (unsigned right : some)
        for (Type type : {index, Type(builder.getI64Type())})
          tryOperation(context, report, name, {left, right}, type, type,
                       std::nullopt);
      for (Type from :
           {index, Type(builder.getI64Type()), Type(builder.getI32Type())})
        for (Type to :
             {index, Type(builder.getI64Type()), Type(builder.getI32Type())})
          tryOperation(context, report, name, {left}, from, to, std::nullopt);
    }
  }
  for (unsigned i = 0; i <= arith::getMaxEnumValForCmpIPredicate(); ++i)
    for (unsigned left : some)
      for (unsigned right : some)
        tryOperation(context, report, "arith.cmpi", {left, right}, index,
                     builder.getI1Type(), i);
  requireOperations(context, report, "lib/ABI/SizeIntegerOps.cpp",
                    "evaluate(Operation *op", "visitIntegerOp");
}

void mlir::posenc::proofs::proveSizes(MLIRContext &context, Report &report) {
  for (const char *rule : {"isNonNegative", "isAtMostZero", "maximize",
                           "splitCases", "findCondition", "resolve"})
    report.require(rule);
  provePolynomials(report);
  proveTerms(report);
  proveResolve(report);
  proveOperations(context, report);
}
