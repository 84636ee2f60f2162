//===- Faults.cpp - seeded faults in the IR of kernels --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Faults.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ::posenc;
using namespace ::posenc::test;

//===----------------------------------------------------------------------===//
// Injection
//===----------------------------------------------------------------------===//

void test::PrintTo(const Fault &fault, std::ostream *os) { *os << fault.name; }

std::string test::getFaultName(const testing::TestParamInfo<Fault> &info) {
  return info.param.name;
}

bool test::inject(ModuleOp module, const Fault &fault) {
  // All sites are found before the first one changes.
  SmallVector<Operation *> sites;
  module.walk([&](Operation *candidate) {
    if (fault.site(candidate))
      sites.push_back(candidate);
  });
  if (sites.empty()) {
    ADD_FAILURE() << fault.name << ": no operation matches";
    return false;
  }
  OwningOpRef<ModuleOp> original(module.clone());
  for (Operation *site : sites)
    fault.edit(site);
  if (OperationEquivalence::isEquivalentTo(
          *original, module, OperationEquivalence::IgnoreLocations)) {
    ADD_FAILURE() << fault.name << ": the edit changes nothing";
    return false;
  }
  if (failed(verify(module))) {
    ADD_FAILURE() << fault.name << ": the module does not verify";
    return false;
  }
  return true;
}

Kernel test::compileWithFault(const LoweredModule &module, const Fault &fault) {
  OwningOpRef<ModuleOp> copy = module.clone();
  if (copy && !fault.isControl() && !inject(*copy, fault))
    copy = {};
  return Kernel(std::move(copy));
}

//===----------------------------------------------------------------------===//
// Matchers
//===----------------------------------------------------------------------===//

/// Returns the number as an attribute of the type; null if one is integer and
/// the other is not.
static TypedAttr getAttr(Type type, Number number) {
  if (auto *integer = std::get_if<int64_t>(&number)) {
    if (type.isIntOrIndex())
      return IntegerAttr::get(type, *integer);
  } else if (isa<FloatType>(type)) {
    return FloatAttr::get(type, std::get<double>(number));
  }
  return {};
}

/// Returns the value of a constant; null if it is none.
static TypedAttr getConstant(Operation *op) {
  TypedAttr value;
  return matchPattern(op, m_Constant(&value)) ? value : TypedAttr();
}

Matcher test::constant(Number number) {
  return [=](Operation *op) {
    TypedAttr value = getConstant(op);
    if (auto elements = dyn_cast_or_null<SplatElementsAttr>(value))
      value = elements.getSplatValue<TypedAttr>();
    return value && value == getAttr(value.getType(), number);
  };
}

Matcher test::splat(Number number) {
  return [isEqual = constant(number)](Operation *op) {
    return isa_and_nonnull<SplatElementsAttr>(getConstant(op)) && isEqual(op);
  };
}

Matcher test::indexConstant(int64_t number) {
  return [=](Operation *op) {
    return getConstant(op) ==
           IntegerAttr::get(IndexType::get(op->getContext()), number);
  };
}

Matcher test::integerConstant(unsigned bits, int64_t number) {
  return [=](Operation *op) {
    return getConstant(op) ==
           IntegerAttr::get(IntegerType::get(op->getContext(), bits), number);
  };
}

/// Returns the elements as an attribute of the type; null if it is no vector of
/// as many integers.
static DenseElementsAttr getElements(Type type, ArrayRef<int64_t> elements) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !vector.getElementType().isInteger() ||
      vector.getNumElements() != static_cast<int64_t>(elements.size()))
    return {};
  SmallVector<Attribute> attrs;
  for (int64_t element : elements)
    attrs.push_back(IntegerAttr::get(vector.getElementType(), element));
  return DenseElementsAttr::get(vector, attrs);
}

Matcher test::denseConstant(std::vector<int64_t> elements) {
  return [=](Operation *op) {
    TypedAttr value = getConstant(op);
    return value && value == getElements(value.getType(), elements);
  };
}

Matcher test::shuffle(std::vector<int64_t> mask) {
  return [=](Operation *op) {
    auto shuffle = dyn_cast<vector::ShuffleOp>(op);
    return shuffle && shuffle.getMask() == ArrayRef<int64_t>(mask);
  };
}

Matcher test::onVectors() {
  return operand(0,
                 [](Value value) { return isa<VectorType>(value.getType()); });
}

Matcher test::onIndices() {
  return operand(0, [](Value value) { return value.getType().isIndex(); });
}

Matcher test::operand(unsigned number, ValueMatcher value) {
  return [=](Operation *op) {
    return number < op->getNumOperands() && value(op->getOperand(number));
  };
}

Matcher test::operand(unsigned number, Matcher definition) {
  return operand(number, [=](Value value) {
    Operation *op = value.getDefiningOp();
    return op && definition(op);
  });
}

Matcher test::usedBy(Matcher user) {
  return [=](Operation *op) { return llvm::any_of(op->getUsers(), user); };
}

Matcher test::operandUsedBy(unsigned number, Matcher user) {
  return operand(number, [=](Value value) {
    return llvm::any_of(value.getUsers(), user);
  });
}

static AffineMap getMap(Operation *op) {
  auto map = op->getAttrOfType<AffineMapAttr>("map");
  return map ? map.getValue() : AffineMap();
}

Matcher test::mapConstant(int64_t number) {
  return [=](Operation *op) {
    bool isFound = false;
    if (AffineMap map = getMap(op))
      map.walkExprs([&](AffineExpr expr) {
        auto constant = dyn_cast<AffineConstantExpr>(expr);
        isFound |= constant && constant.getValue() == number;
      });
    return isFound;
  };
}

ValueMatcher test::argument(unsigned number) {
  return [=](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() == number &&
           isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  };
}

/// Returns the number of a block argument of an scf.for; none for other values.
static std::optional<unsigned> getLoopArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || !isa<scf::ForOp>(argument.getOwner()->getParentOp()))
    return std::nullopt;
  return argument.getArgNumber();
}

ValueMatcher test::inductionVariable() {
  return [](Value value) { return getLoopArgument(value) == 0u; };
}

ValueMatcher test::loopCarried() {
  return [](Value value) { return getLoopArgument(value).value_or(0) > 0; };
}

//===----------------------------------------------------------------------===//
// Edits
//===----------------------------------------------------------------------===//

Edit test::setPredicate(arith::CmpIPredicate predicate) {
  return change<arith::CmpIOp>(
      [=](arith::CmpIOp op) { op.setPredicate(predicate); });
}

Edit test::setPredicate(arith::CmpFPredicate predicate) {
  return change<arith::CmpFOp>(
      [=](arith::CmpFOp op) { op.setPredicate(predicate); });
}

/// Returns the number as a constant of a type, a vector's elements being equal.
static TypedAttr getConstantAttr(Type type, Number number) {
  TypedAttr element = getAttr(getElementTypeOrSelf(type), number);
  if (auto shaped = dyn_cast<ShapedType>(type))
    return DenseElementsAttr::get(shaped, Attribute(element));
  return element;
}

Edit test::setConstant(Number number) {
  return [=](Operation *op) {
    op->setAttr("value", getConstantAttr(getConstant(op).getType(), number));
  };
}

Edit test::setElements(std::vector<int64_t> elements) {
  return [=](Operation *op) {
    op->setAttr("value", getElements(op->getResult(0).getType(), elements));
  };
}

Edit test::setMask(std::vector<int64_t> mask) {
  return change<vector::ShuffleOp>(
      [=](vector::ShuffleOp op) { op.setMask(mask); });
}

Edit test::setMapConstant(int64_t from, int64_t to) {
  return [=](Operation *op) {
    MLIRContext *context = op->getContext();
    AffineMap map = getMap(op);
    map = map.replace(getAffineConstantExpr(from, context),
                      getAffineConstantExpr(to, context), map.getNumDims(),
                      map.getNumSymbols());
    op->setAttr("map", AffineMapAttr::get(map));
  };
}

static Value createConstant(Operation *before, Type type, Number number) {
  OpBuilder builder(before);
  return arith::ConstantOp::create(builder, before->getLoc(),
                                   getConstantAttr(type, number));
}

Edit test::setOperand(unsigned number, Number constant) {
  return [=](Operation *op) {
    Type type = op->getOperand(number).getType();
    op->setOperand(number, createConstant(op, type, constant));
  };
}

Edit test::setOperandToArgument(unsigned number, unsigned argument) {
  return [=](Operation *op) {
    auto function = op->getParentOfType<FunctionOpInterface>();
    op->setOperand(number, function.getArgument(argument));
  };
}

Edit test::copyOperand(unsigned from, unsigned to) {
  return [=](Operation *op) { op->setOperand(to, op->getOperand(from)); };
}

Edit test::swapOperands(unsigned first, unsigned second) {
  return [=](Operation *op) {
    Value value = op->getOperand(first);
    op->setOperand(first, op->getOperand(second));
    op->setOperand(second, value);
  };
}

Edit test::doubleOperand(unsigned number) {
  return [=](Operation *op) {
    OpBuilder builder(op);
    Value value = op->getOperand(number);
    op->setOperand(number,
                   arith::AddIOp::create(builder, op->getLoc(), value, value));
  };
}

Edit test::addToOperand(unsigned number, int64_t constant) {
  return [=](Operation *op) {
    OpBuilder builder(op);
    Value value = op->getOperand(number);
    Value added = createConstant(op, value.getType(), constant);
    op->setOperand(number,
                   arith::AddIOp::create(builder, op->getLoc(), value, added));
  };
}

Edit test::forward(unsigned operand) {
  return [=](Operation *op) {
    op->getResult(0).replaceAllUsesWith(op->getOperand(operand));
  };
}

Edit test::replaceWithMin(int64_t bound) {
  return [=](Operation *op) {
    OpBuilder builder(op);
    Value x = op->getOperand(0);
    op->getResult(0).replaceAllUsesWith(arith::MinUIOp::create(
        builder, op->getLoc(), x, createConstant(op, x.getType(), bound)));
  };
}

Edit test::replaceWith(StringRef name, std::vector<unsigned> operands) {
  return [=](Operation *op) {
    SmallVector<Value> values;
    for (unsigned number : operands)
      values.push_back(op->getOperand(number));
    if (operands.empty())
      llvm::append_range(values, op->getOperands());
    OpBuilder builder(op);
    Operation *replacement =
        builder.create(op->getLoc(), builder.getStringAttr(name), values,
                       op->getResultTypes());
    op->replaceAllUsesWith(replacement);
  };
}

Edit test::setAttr(StringRef name, Number number) {
  return [=](Operation *op) {
    Builder builder(op);
    Type type = std::holds_alternative<int64_t>(number)
                    ? Type(builder.getI64Type())
                    : Type(builder.getF64Type());
    op->setAttr(name, getAttr(type, number));
  };
}

Edit test::removeAttr(StringRef name) {
  return [=](Operation *op) { op->removeAttr(name); };
}

Edit test::both(Edit first, Edit second) {
  return [=](Operation *op) {
    first(op);
    second(op);
  };
}
