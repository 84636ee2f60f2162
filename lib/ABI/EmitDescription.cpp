//===- EmitDescription.cpp - description of a kernel ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layouts must match the structs in runtime/kernel/Description.h.
//
//===----------------------------------------------------------------------===//

#include "CInterfaceEmitter.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Weights.h"

using namespace mlir;
using namespace mlir::posenc;

void CInterfaceEmitter::createTable(StringRef name,
                                    SmallVector<int64_t> values) {
  if (values.empty())
    values.push_back(0);
  builder.setInsertionPointToEnd(module.getBody());
  int64_t size = values.size();
  LLVM::GlobalOp::create(
      builder, module.getLoc(), LLVM::LLVMArrayType::get(i64, size),
      /*isConstant=*/true, LLVM::Linkage::Internal, name,
      DenseElementsAttr::get(RankedTensorType::get({size}, i64),
                             ArrayRef<int64_t>(values)));
}

void CInterfaceEmitter::createText(StringRef name, StringRef text) {
  builder.setInsertionPointToEnd(module.getBody());
  LLVM::GlobalOp::create(
      builder, module.getLoc(),
      LLVM::LLVMArrayType::get(builder.getI8Type(), text.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name,
      builder.getStringAttr(text));
}

void CInterfaceEmitter::createVariants(LLVM::LLVMFuncOp kernel) {
  Location loc = kernel.getLoc();
  for (unsigned variant = 0; variant < cpuFeatures.size(); ++variant) {
    std::string symbol = getSymbol(kernel, variant);
    builder.setInsertionPointToEnd(module.getBody());
    if (!module.lookupSymbol(symbol))
      LLVM::GlobalOp::create(builder, loc, getKernelType(), /*isConstant=*/true,
                             LLVM::Linkage::External, symbol, Attribute());
  }
  builder.setInsertionPointToEnd(module.getBody());
  auto element =
      LLVM::LLVMStructType::getLiteral(builder.getContext(), {i64, pointer});
  auto type = LLVM::LLVMArrayType::get(element, cpuFeatures.size());
  auto global = LLVM::GlobalOp::create(
      builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
      (kernel.getName() + ".variants").str(), Attribute());
  builder.createBlock(&global.getInitializer());
  Value value = LLVM::UndefOp::create(builder, loc, type);
  for (int64_t number = 0; number < int64_t(cpuFeatures.size()); ++number) {
    value = LLVM::InsertValueOp::create(
        builder, loc, value,
        constant(loc, static_cast<int64_t>(cpuFeatures[number])),
        ArrayRef<int64_t>{number, 0});
    value = LLVM::InsertValueOp::create(builder, loc, value,
                                        address(loc, getSymbol(kernel, number)),
                                        ArrayRef<int64_t>{number, 1});
  }
  LLVM::ReturnOp::create(builder, loc, value);
}

/// Appends a polynomial in the postfix form that the kernel support library
/// evaluates.
static void addCode(SmallVector<int64_t> &code, AffineExpr expr,
                    const CallLayout &layout) {
  auto add = [&](auto &&self, AffineExpr expr) -> void {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      code.append({kSizeConstant, constant.getValue()});
    } else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
      int64_t word = layout.getSymbolWord(symbol.getPosition());
      code.append({layout.isTensorWord(word) ? kSizeElement : kSizeWord, word});
    } else {
      auto binary = cast<AffineBinaryOpExpr>(expr);
      self(self, binary.getLHS());
      self(self, binary.getRHS());
      code.append(
          {expr.getKind() == AffineExprKind::Add ? kSizeAdd : kSizeMultiply,
           int64_t{0}});
    }
  };
  add(add, expr);
  code.append({kSizeEnd, int64_t{0}});
}

/// Returns a text in the form of a format of the kernel support library, in
/// which a percent sign begins a value.
static std::string escape(StringRef text) {
  std::string result;
  for (char c : text)
    result.append(c == '%' ? 2 : 1, c);
  return result;
}

/// Returns the message for a violated relation and whether its sides are
/// swapped. In the message, the first %d is the value of the side that is named
/// first, and the second %d that of the other side.
static std::pair<std::string, bool> describe(AbiAttr abi,
                                             RelationAttr relation) {
  AffineExpr left = relation.getSides().getResult(0);
  AffineExpr right = relation.getSides().getResult(1);
  bool isEqual = relation.getKind() == RelationKind::Equal;
  // The left side of a conditional relation is (a < b ? expr : right), or (a ==
  // b ? right : expr). It is violated only by `expr`, which the message names.
  auto getRequired = [&](AffineExpr expr) {
    for (;;) {
      auto symbol = dyn_cast<AffineSymbolExpr>(expr);
      int64_t number =
          symbol ? int64_t{symbol.getPosition()} - abi.getTermSymbol(0) : -1;
      if (number < 0)
        return expr;
      TermAttr term = abi.getTerms()[number];
      AffineMap operands = term.getOperands();
      if (term.getKind() == TermKind::IfLess && operands.getResult(3) == right)
        expr = operands.getResult(2);
      else if (term.getKind() == TermKind::IfEqual &&
               operands.getResult(2) == right)
        expr = operands.getResult(3);
      else
        return expr;
    }
  };
  left = getRequired(left);
  // Names a size or scalar first, then the expression that it is compared to.
  bool swaps = !isa<AffineSymbolExpr>(left) &&
               (isa<AffineSymbolExpr>(right) || isa<AffineConstantExpr>(left));
  if (swaps)
    std::swap(left, right);
  std::string text = escape(describeSize(abi, left)) + " is %d, expected " +
                     (isEqual ? ""
                      : swaps ? "at least "
                              : "at most ");
  text += isa<AffineConstantExpr>(right)
              ? "%d"
              : escape(describeSize(abi, right)) + ", which is %d";
  return {text, swaps};
}

void CInterfaceEmitter::emitDescription(LLVM::LLVMFuncOp kernel,
                                        const CallLayout &layout,
                                        const KernelMemory &memory) {
  AbiAttr abi = layout.getAbi();
  std::string names;
  auto addName = [&](StringRef name) {
    int64_t offset = names.size();
    names += name;
    names.push_back('\0');
    return offset;
  };
  addName(kernel.getName());

  SmallVector<int64_t> arguments, dims;
  int64_t numInputs = abi.getInputs().size();
  for (auto [index, arg] : llvm::enumerate(layout.getArguments())) {
    auto number = static_cast<int64_t>(index);
    RankedTensorType tensor = layout.getTensor(index);
    ElementTypeInfo element = getElementTypeInfo(arg.getType());
    arguments.append(
        {addName(arg.getName()), element.dlpackCode, 8 * element.bytes,
         tensor ? tensor.getRank() : -1,
         number < numInputs ? -1 : abi.getInPlace()[number - numInputs],
         layout.getStridesWord(index), static_cast<int64_t>(dims.size() / 2),
         llvm::is_contained(abi.getShapeOnly(), number),
         number < numInputs && tensor && abi.hasSizesOf(number)});
    if (!tensor)
      continue;
    for (auto [size, word] :
         llvm::zip_equal(tensor.getShape(), layout.getDimWords(index)))
      dims.append({word, ShapedType::isDynamic(size) ? -1 : size});
  }
  SmallVector<int64_t> bounds;
  for (BoundAttr bound : abi.getBounds()) {
    bounds.append({static_cast<int64_t>(bound.getKind()), bound.getInput(),
                   bound.getLengths()});
    auto addFactor = [&](ArrayRef<int64_t> factors, size_t number,
                         int64_t absent) {
      int64_t factor = number < factors.size() ? factors[number] : absent;
      if (factor < 0 && number < factors.size())
        bounds.append({layout.getSymbolWord(-1 - factor), -1});
      else
        bounds.append({-1, factor});
    };
    addFactor(bound.getLimit(), 0, 1);
    addFactor(bound.getLimit(), 1, 1);
    addFactor(bound.getEach(), 0, -1);
  }
  SmallVector<int64_t> code, terms, relations;
  auto addOperand = [&](AffineExpr expr) {
    int64_t offset = code.size();
    addCode(code, expr, layout);
    return offset;
  };
  for (TermAttr term : abi.getTerms()) {
    terms.push_back(static_cast<int64_t>(term.getKind()));
    for (unsigned i = 0; i < 4; ++i)
      terms.push_back(i < term.getOperands().getNumResults()
                          ? addOperand(term.getOperands().getResult(i))
                          : 0);
  }
  for (RelationAttr relation : abi.getRelations()) {
    auto [text, swaps] = describe(abi, relation);
    relations.append({static_cast<int64_t>(relation.getKind()),
                      addOperand(relation.getSides().getResult(0)),
                      addOperand(relation.getSides().getResult(1)),
                      addName(text), swaps});
  }
  ArrayAttr messages = getKernelConfig(kernel).assertions;
  int64_t numAssertions = messages ? messages.size() : 0,
          assertions = names.size();
  for (int64_t number = 0; number < numAssertions; ++number) {
    std::string text = cast<StringAttr>(messages[number]).str();
    llvm::replace(text, '\0', ' ');
    addName("assertion failed: " + escape(text));
  }
  std::string base = (kernel.getName() + ".").str();
  createText(base + "names", names);
  createTable(base + "arguments", arguments);
  createTable(base + "dims", dims);
  createTable(base + "sizes", SmallVector<int64_t>(abi.getSizes()));
  createTable(base + "bounds", bounds);
  createTable(base + "code", code);
  createTable(base + "terms", terms);
  createTable(base + "relations", relations);
  createVariants(kernel);

  Location loc = kernel.getLoc();
  builder.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> types(10, pointer);
  types.append(14, i64);
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  auto global = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal,
                                       base + "description", Attribute());
  builder.createBlock(&global.getInitializer());
  SmallVector<Value> fields;
  for (StringRef table : {"names", "arguments", "dims", "sizes", "variants",
                          "bounds", "code", "terms", "relations"})
    fields.push_back(address(loc, base + table.str()));
  bool hasWorkspace = getKernelConfig(kernel).hasWorkspace;
  fields.push_back(memory.sharedBytes && !hasWorkspace
                       ? address(loc, memory.sharedBytes <= kSmallSharedBytes
                                          ? kRunSmallSharedSymbol
                                          : kRunSharedSymbol)
                       : LLVM::ZeroOp::create(builder, loc, pointer));
  for (int64_t number :
       {numInputs, static_cast<int64_t>(abi.getOutputs().size()),
        static_cast<int64_t>(abi.getSizes().size()), layout.getNumWords(),
        static_cast<int64_t>(cpuFeatures.size()),
        static_cast<int64_t>(abi.getBounds().size()),
        static_cast<int64_t>(abi.getTerms().size()),
        static_cast<int64_t>(abi.getRelations().size()), int64_t{hasWorkspace},
        hasWorkspace ? memory.sharedBytes : 0, memory.scratchBytes,
        numAssertions, assertions, int64_t{kernel->hasAttr(kWeightsAttrName)}})
    fields.push_back(constant(loc, number));
  Value value = LLVM::UndefOp::create(builder, loc, type);
  for (auto [number, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(
        builder, loc, value, field,
        ArrayRef<int64_t>{static_cast<int64_t>(number)});
  LLVM::ReturnOp::create(builder, loc, value);
}
