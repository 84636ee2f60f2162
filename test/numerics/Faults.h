//===- Faults.h - seeded faults in the IR of kernels ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fault edits every operation of a module that a matcher accepts. Tests
// compose both from the functions below. This one makes a window of 30 keys one
// key narrower:
//
//   {"WindowNarrow", cmpi(sle, operand(1, constant(30))), setPredicate(slt)}
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_NUMERICS_FAULTS_H
#define POSENC_TEST_NUMERICS_FAULTS_H

#include "Harness.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <variant>

namespace posenc::test {

using Matcher = std::function<bool(mlir::Operation *)>;
using ValueMatcher = std::function<bool(mlir::Value)>;
using Edit = std::function<void(mlir::Operation *)>;

struct Fault {
  const char *name;
  /// Matches the operations that are edited.
  Matcher site;
  /// Is null for the control, which must pass.
  Edit edit;

  bool isControl() const { return !edit; }
};
void PrintTo(const Fault &fault, std::ostream *os);
std::string getFaultName(const testing::TestParamInfo<Fault> &info);

/// Returns the fault that changes nothing.
inline Fault control() { return {"Control", nullptr, nullptr}; }

/// Edits all sites. Adds a test failure and returns false if there are none, if
/// the edits change nothing, or if the module does not verify with them.
bool inject(mlir::ModuleOp module, const Fault &fault);

/// Compiles a copy of the module with the fault, or with none for the control.
Kernel compileWithFault(const LoweredModule &module, const Fault &fault);

//===----------------------------------------------------------------------===//
// Matchers
//===----------------------------------------------------------------------===//

/// Matches an operation of a class for which all conditions hold.
template <typename OpTy, typename... Conditions>
Matcher op(Conditions... conditions) {
  return [=](mlir::Operation *candidate) {
    return mlir::isa<OpTy>(candidate) && (conditions(candidate) && ...);
  };
}

/// Matches a comparison for which all conditions hold.
template <typename... Conditions>
Matcher cmpi(mlir::arith::CmpIPredicate predicate, Conditions... conditions) {
  return [=](mlir::Operation *candidate) {
    auto compare = mlir::dyn_cast<mlir::arith::CmpIOp>(candidate);
    return compare && compare.getPredicate() == predicate &&
           (conditions(candidate) && ...);
  };
}

template <typename... Conditions>
Matcher cmpf(mlir::arith::CmpFPredicate predicate, Conditions... conditions) {
  return [=](mlir::Operation *candidate) {
    auto compare = mlir::dyn_cast<mlir::arith::CmpFOp>(candidate);
    return compare && compare.getPredicate() == predicate &&
           (conditions(candidate) && ...);
  };
}

/// Holds an integer or a real number. Its width is that of the constant that it
/// is compared with or stored in.
using Number = std::variant<int64_t, double>;

/// Matches a scalar constant, or a vector constant with equal elements.
Matcher constant(Number number);
/// Matches a vector constant with equal elements.
Matcher splat(Number number);
/// Matches a scalar constant of type index.
Matcher indexConstant(int64_t number);
/// Matches a scalar constant of an integer type.
Matcher integerConstant(unsigned bits, int64_t number);
/// Matches a vector constant with these elements.
Matcher denseConstant(std::vector<int64_t> elements);
/// Matches a vector.shuffle with this mask.
Matcher shuffle(std::vector<int64_t> mask);

// The following matchers are conditions on an operation of any class.

/// Requires that the first operand is a vector.
Matcher onVectors();
/// Requires that the first operand is an index.
Matcher onIndices();
/// Requires an operand.
Matcher operand(unsigned number, ValueMatcher value);
/// Requires that an operation that matches defines the operand.
Matcher operand(unsigned number, Matcher definition);
/// Requires that an operation that matches uses a result.
Matcher usedBy(Matcher user);
template <typename OpTy, typename... Conditions>
Matcher usedBy(Conditions... conditions) {
  return usedBy(op<OpTy>(conditions...));
}
/// Requires that an operation that matches uses the operand as well.
Matcher operandUsedBy(unsigned number, Matcher user);
/// Requires a constant in the affine map of the operation.
Matcher mapConstant(int64_t number);

// The following are values that an operand can be.

/// Matches an argument of a function.
ValueMatcher argument(unsigned number);
/// Matches the induction variable of an scf.for.
ValueMatcher inductionVariable();
/// Matches a value that an scf.for carries from one iteration to the next.
ValueMatcher loopCarried();

//===----------------------------------------------------------------------===//
// Edits
//===----------------------------------------------------------------------===//

/// Sets the predicate of a comparison.
Edit setPredicate(mlir::arith::CmpIPredicate predicate);
Edit setPredicate(mlir::arith::CmpFPredicate predicate);

/// Sets a constant, or all elements of a vector constant.
Edit setConstant(Number number);
/// Sets the elements of a vector constant.
Edit setElements(std::vector<int64_t> elements);
/// Sets the mask of a vector.shuffle.
Edit setMask(std::vector<int64_t> mask);
/// Replaces a constant in the operation's affine map.
Edit setMapConstant(int64_t from, int64_t to);

/// Sets an operand to a constant of its type.
Edit setOperand(unsigned number, Number constant);
/// Sets an operand to an argument of the function.
Edit setOperandToArgument(unsigned number, unsigned argument);
/// Sets the operand `to` to the operand `from`.
Edit copyOperand(unsigned from, unsigned to);
/// Swaps two operands.
Edit swapOperands(unsigned first, unsigned second);
/// Doubles an operand.
Edit doubleOperand(unsigned number);
/// Adds a constant to an operand.
Edit addToOperand(unsigned number, int64_t constant);

/// Replaces the result by an operand.
Edit forward(unsigned operand);
/// Replaces the result of `op(x, ...)` by `min(x, bound)`, for an index x that
/// is not negative.
Edit replaceWithMin(int64_t bound);
/// Replaces an operation by one of another class with the given operands of the
/// first; none stand for all.
Edit replaceWith(mlir::StringRef name, std::vector<unsigned> operands);
template <typename OpTy> Edit replaceWith(std::vector<unsigned> operands = {}) {
  return replaceWith(OpTy::getOperationName(), std::move(operands));
}

/// Sets an attribute of type i64 or f64.
Edit setAttr(mlir::StringRef name, Number number);
/// Removes an attribute.
Edit removeAttr(mlir::StringRef name);
/// Replaces all attributes of a kind that are parts of the operation's
/// attributes.
template <typename AttrTy>
Edit changeAttrs(std::function<AttrTy(AttrTy)> change) {
  return [=](mlir::Operation *site) {
    mlir::AttrTypeReplacer replacer;
    replacer.addReplacement(
        [=](AttrTy attr) -> mlir::Attribute { return change(attr); });
    replacer.replaceElementsIn(site);
  };
}

/// Calls a function with an operation of a class.
template <typename OpTy> Edit change(std::function<void(OpTy)> function) {
  return [=](mlir::Operation *site) { function(mlir::cast<OpTy>(site)); };
}
/// Makes one edit after the other.
Edit both(Edit first, Edit second);

} // namespace posenc::test

#endif // POSENC_TEST_NUMERICS_FAULTS_H
